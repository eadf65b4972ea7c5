#!/bin/sh
# Run a command for which a virtual board's tree is this machine: as_board.sh ROOT WORK COMMAND...
# To be started in a mount namespace of its own (unshare --mount --propagation private), as root.
# WORK is an empty folder; a tmpfs is mounted there for the upper layers, since an overlay cannot be one's upper layer.
set -e
root=$1 work=$2
shift 2
mount -t tmpfs as-board "$work"
mkdir -p "$work/sys" "$work/sys-work" "$work/etc" "$work/etc-work" "$work/bin" "$work/extra/firmware/devicetree" \
  "$work/extra/devices/virtual/dmi/id"
# The kernel shows the device tree below /sys too; a PC's dmi folder is asked for even on a board.
cp -r "$root/proc/device-tree" "$work/extra/firmware/devicetree/base"
mount -t overlay as-board -o "lowerdir=$root/sys:$work/extra:/sys,upperdir=$work/sys,workdir=$work/sys-work" /sys
mount -t overlay as-board -o "lowerdir=$root/etc:/etc,upperdir=$work/etc,workdir=$work/etc-work" /etc
mount -t tmpfs as-board /run
grep -q '^jtop:' /etc/group || echo 'jtop:x:47110:root' >>/etc/group
printf '#!/bin/sh\n[ "$*" = -p ] && echo aarch64 && exit\nexec /bin/uname "$@"\n' >"$work/bin/uname"
chmod 755 "$work/bin/uname"
PATH=$work/bin:$PATH exec "$@"
