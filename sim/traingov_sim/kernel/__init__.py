"""The files of a virtual board: a tree of /sys, /proc and /etc with a kernel's manners, in a folder or by FUSE."""
