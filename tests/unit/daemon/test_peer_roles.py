"""Who is at the other end, and what they may do."""

import os
import socket
import subprocess
import sys

import pytest

from traingov.sessions.peer import Access, Peer, Role, group_id, may_register, peer_of, peer_pidfd, process_uids

ACCESS = Access(daemon_uid=0, user_gid=500, admin_gid=600)


@pytest.mark.parametrize(
    ("uid", "gid", "groups", "role"),
    [
        (0, 0, [], Role.ADMIN),
        (1000, 1000, [], Role.NONE),
        (1000, 1000, [500], Role.USER),
        (1000, 500, [], Role.USER),
        (1000, 1000, [500, 600], Role.ADMIN),
        (1000, 600, [], Role.ADMIN),
    ],
)
def test_a_role_comes_from_user_and_groups(uid, gid, groups, role):
    assert ACCESS.role(Peer(1, uid, gid, frozenset(groups))) is role


def test_a_daemon_that_is_not_root_obeys_its_own_user():
    access = Access(daemon_uid=1000, user_gid=500, admin_gid=600)
    assert access.role(Peer(1, 1000, 1000, frozenset())) is Role.ADMIN
    assert access.role(Peer(1, 1001, 1001, frozenset())) is Role.NONE


def test_a_machine_without_the_groups_lets_only_root_in():
    access = Access(daemon_uid=0)
    assert access.role(Peer(1, 1000, 1000, frozenset([500, 600]))) is Role.NONE
    assert access.role(Peer(1, 0, 0, frozenset())) is Role.ADMIN


def test_groups_are_looked_up_by_name():
    assert group_id("root") == 0
    assert group_id("no-such-group-here") is None
    assert Access.from_system("root", "no-such-group-here").user_gid == 0


def test_the_kernel_tells_who_connected():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        peer = peer_of(ours)
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.geteuid(), os.getegid())
    assert peer.groups == frozenset(os.getgroups())


def test_groups_come_from_proc_where_the_kernel_has_no_peergroups(monkeypatch):
    monkeypatch.setattr("traingov.sessions.peer._groups_from_socket", lambda connection: None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        assert peer_of(ours).groups == frozenset(os.getgroups())


def test_groups_of_a_process_of_another_user_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr("traingov.sessions.peer._groups_from_socket", lambda connection: None)
    folder = tmp_path / str(os.getpid())
    folder.mkdir()
    other = os.geteuid() + 1
    (folder / "status").write_text(f"Name:\tx\nUid:\t{other}\t{other}\t{other}\t{other}\nGroups:\t500 600\n")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        assert peer_of(ours, tmp_path).groups == frozenset()
        (folder / "status").write_text(f"Name:\tx\nUid:\t{os.geteuid()}\t0\t0\t0\nGroups:\t500 600\n")
        assert peer_of(ours, tmp_path).groups == {500, 600}


def test_a_pidfd_of_the_peer_names_a_process_or_is_none():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        fd = peer_pidfd(ours)
    if fd is None:
        pytest.skip("this kernel has no SO_PEERPIDFD (Linux 6.5)")
    try:
        with open(f"/proc/self/fdinfo/{fd}") as info:
            assert f"Pid:\t{os.getpid()}\n" in info.readlines()
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


def test_one_may_register_only_ones_own_processes(tmp_path):
    for pid, real, effective in ((10, 1000, 1000), (11, 1001, 1001), (12, 1000, 0)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nUid:\t{real}\t{effective}\t0\t0\n")
    user, root = Peer(9, 1000, 1000, frozenset()), Peer(9, 0, 0, frozenset())
    allowed = {pid: may_register(user, pid, tmp_path) for pid in (9, 10, 11, 12, 13)}
    assert allowed == {9: True, 10: True, 11: False, 12: False, 13: False}
    assert all(may_register(root, pid, tmp_path) for pid in (10, 11, 12))
    assert not may_register(root, 13, tmp_path), "a process that has ended"


def test_the_users_of_a_live_process_are_read():
    assert process_uids(os.getpid()) == {os.getuid(), os.geteuid()}
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert process_uids(ended.pid) is None
