package reconcile

// MachineFacts are what of a machine and its engine decides whether spaces can run on it.
// Numbers are -1, and texts empty, where nobody could look.
type MachineFacts struct {
	UID int
	// RuntimeDir is $XDG_RUNTIME_DIR; RuntimeDirOwner is -1 where there is no such folder.
	RuntimeDir      string
	RuntimeDirOwner int
	// Systemd tells whether the system has it; Lingers, whether the caller's processes
	// outlive the last logout.
	Systemd bool
	Lingers bool
	// SubUIDs and SubGIDs are how many ids the caller may give to containers.
	SubUIDs, SubGIDs int
	// UnprivilegedPort is the lowest port that the caller may listen on.
	UnprivilegedPort int
	// CgroupVersion is 1 or 2, and Controllers what of version 2 the caller has been handed.
	CgroupVersion int
	Controllers   []string
	// Keys are how many keys the caller has in the kernel, of MaxKeys. The runtime makes one
	// for each container.
	Keys, MaxKeys int
	// InotifyWatches and InotifyInstances are what the caller may have of them.
	InotifyWatches, InotifyInstances int
	// Git is the version of git, empty without one.
	Git string

	// DataRoot is what a project's state is kept in; empty without a project.
	DataRoot string
	// DataRootFileSystem is the kind that it is on, or will be.
	DataRootFileSystem string
	// DataRootRefusal is why it can't be used.
	DataRootRefusal *Refusal
	// Lock is who holds the lock of an apply, empty for nobody; LockFile is where it is.
	Lock     string
	LockFile string

	// Endpoint is the engine's, and EndpointRefusal why it can't be used.
	Endpoint        string
	EndpointRefusal *Refusal
	// Engine and the rest of it are known where it can be.
	Engine EngineFacts
}

// EngineFacts are what an engine says of itself beside its features.
type EngineFacts struct {
	Engine
	// Known is true where an engine was asked.
	Known bool
	// Driver is what it keeps images in.
	Driver string
	// Running is how many containers run on it, ours and others'.
	Running int
}
