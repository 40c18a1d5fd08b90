package reconcile

import (
	"fmt"
	"slices"
	"strings"
)

// capabilityOrder are the kernel's capabilities, each at the bit that it has in a set
// (linux/capability.h).
var capabilityOrder = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
	"SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
	"IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
	"SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
	"LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
	"WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
}

// capabilitySet is what the kernel makes of canonical names.
func capabilitySet(names []string) uint64 {
	var set uint64
	for _, name := range names {
		if bit := slices.Index(capabilityOrder, name); bit >= 0 {
			set |= 1 << bit
		}
	}
	return set
}

// capabilityNames spells a set. Bits that a newer kernel has are told by their number.
func capabilityNames(set uint64) string {
	if all := uint64(1)<<len(capabilityOrder) - 1; set == all {
		return "all"
	}
	var names []string
	for bit := range 64 {
		switch {
		case set&(1<<bit) == 0:
		case bit < len(capabilityOrder):
			names = append(names, capabilityOrder[bit])
		default:
			names = append(names, fmt.Sprintf("number %d", bit))
		}
	}
	return strings.Join(names, "+")
}
