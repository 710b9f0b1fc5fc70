# SPDX-License-Identifier: Apache-2.0
"""Named network namespaces are entered by ``ip netns exec``, which needs a root directory that is a mount point."""

from __future__ import annotations

from dutperf.machine.access import Machine

NO_MOUNT_POINT = "/ is no mount point, as in a chroot"
ADVICE = "begin with unshare --mount, then mount --rbind DIR DIR, and enter DIR after"


def is_mount_point(machine: Machine) -> bool:
    """Whether / is one. The kernel lists the mounts that a process can reach (proc(5)): a chroot's / is none of them,
    unless it was mounted."""
    return any(line.split()[1:2] == ["/"] for line in (machine.read("proc/mounts") or "").splitlines())
