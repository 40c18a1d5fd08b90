package places

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"spaces/reconcile"
	"spaces/schema"
)

// Host is who runs the program and where that user's files are: all that this package
// takes from the environment, so that nothing else of it reads any.
type Host struct {
	// UID owns everything the program makes, and every secret it gives.
	UID int
	// Home is what "~" stands for; AccountHome is the home that the password database
	// knows, empty when it has none. Both are protected.
	Home        string
	AccountHome string
	// ConfigHome and StateHome are XDG's base directories, or their defaults.
	ConfigHome string
	StateHome  string
	// RuntimeDir is $XDG_RUNTIME_DIR, where rootless engines put their sockets; empty
	// when it isn't set.
	RuntimeDir string
	// Executable is the path of this very program, and ExecutableFile opens it even
	// when the path now leads to another: an upgrade under a running process.
	Executable     string
	ExecutableFile string
}

// CurrentHost describes the caller of this process.
func CurrentHost() (Host, error) {
	uid := os.Getuid()
	account := ""
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		account = u.HomeDir
	}
	executable, err := os.Executable()
	if err != nil {
		return Host{}, fmt.Errorf("cannot tell where this program is: %w", err)
	}
	return HostFrom(os.Getenv, uid, account, executable)
}

// HostFrom describes a caller by its environment, its entry in the password database
// and the program's path. Base directories that aren't absolute are ignored, as the XDG
// specification asks.
func HostFrom(getenv func(string) string, uid int, accountHome, executable string) (Host, error) {
	absolute := func(path string) string {
		if filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
		return ""
	}
	h := Host{
		UID:            uid,
		Home:           absolute(getenv("HOME")),
		AccountHome:    absolute(accountHome),
		ConfigHome:     absolute(getenv("XDG_CONFIG_HOME")),
		StateHome:      absolute(getenv("XDG_STATE_HOME")),
		RuntimeDir:     absolute(getenv("XDG_RUNTIME_DIR")),
		Executable:     executable,
		ExecutableFile: "/proc/self/exe",
	}
	if h.Home == "" {
		h.Home = h.AccountHome
	}
	if h.Home == "" {
		return Host{}, errors.New("cannot tell where your home directory is: set HOME to an absolute path")
	}
	if h.ConfigHome == "" {
		h.ConfigHome = filepath.Join(h.Home, ".config")
	}
	if h.StateHome == "" {
		h.StateHome = filepath.Join(h.Home, ".local", "state")
	}
	return h, nil
}

// ConfigDir is the program's configuration directory.
func (h Host) ConfigDir() string { return filepath.Join(h.ConfigHome, "spaces") }

// SecretsDir is where secrets are kept by convention.
func (h Host) SecretsDir() string { return filepath.Join(h.ConfigDir(), "secrets") }

// expand replaces a leading "~" by the home directory.
func (h Host) expand(path string) string {
	if path == "~" {
		return h.Home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(h.Home, rest)
	}
	return path
}

// homes are the caller's home directories: nearly always one.
func (h Host) homes() []string {
	if h.AccountHome == "" || h.AccountHome == h.Home {
		return []string{h.Home}
	}
	return []string{h.Home, h.AccountHome}
}

// DataRoot is the folder of a project's state on the host: absolute, clean, and with
// symlinks resolved, so that it has one spelling wherever it is compared.
type DataRoot string

// The parts of a data root.
const (
	PartSock    = "sock"     // sockets, each in a directory of its own
	PartStore   = "store"    // the broker's
	PartHost    = "host"     // what the host process says of itself
	PartGitHost = "git-host" // code in transfer; no space mounts it
	PartRuns    = "runs"     // a folder for each session
	PartState   = "state"    // the key, the locks, the records
)

// Part is one of the folders of the data root.
func (r DataRoot) Part(name string) string { return filepath.Join(string(r), name) }

// Store is the store path: the one string that says whose a container is.
func (r DataRoot) Store() string { return r.Part(PartStore) }

// KeyFile holds the key of the keyed digests.
func (r DataRoot) KeyFile() string { return filepath.Join(r.Part(PartState), "key") }

// ApplyLock is held by whoever carries out a plan.
func (r DataRoot) ApplyLock() string { return filepath.Join(r.Part(PartState), "apply.lock") }

// WatchLock is held for life by a watcher.
func (r DataRoot) WatchLock() string { return filepath.Join(r.Part(PartState), "watch.lock") }

// SourceFile holds the folder that last applied.
func (r DataRoot) SourceFile() string { return filepath.Join(r.Part(PartState), "source") }

// DataRootChoice is what may say where the data root is, the strongest first.
type DataRootChoice struct {
	// Given is the value of --data-root or SPACES_DATA_ROOT; GivenBy says which.
	Given   string
	GivenBy string
	// Files is the value of data_root, and Origin where it stands.
	Files  string
	Origin schema.Origin
	// Project names the default's folder.
	Project string
}

// ResolveDataRoot decides where the data root is. It makes nothing, and works as well
// before there is anything. What is wrong with a choice comes as a *reconcile.Refusal.
func ResolveDataRoot(h Host, choice DataRootChoice) (DataRoot, error) {
	path, by, code := filepath.Join(h.StateHome, "spaces", choice.Project), "the default", reconcile.CodeUsage
	var origin schema.Origin
	switch {
	case choice.Given != "":
		path, by = choice.Given, choice.GivenBy
	case choice.Files != "":
		path, by, code, origin = choice.Files, "data_root", reconcile.CodeConfigInvalid, choice.Origin
	case choice.Project == "":
		return "", errors.New("cannot choose a data root: no project and no path given")
	}
	refuse := func(text, fix string) (DataRoot, error) {
		return "", &reconcile.Refusal{Code: code, Text: text, Fix: fix, Origin: origin}
	}
	path = h.expand(path)
	if !filepath.IsAbs(path) {
		return refuse(fmt.Sprintf("The data root %q (%s) is not an absolute path.", path, by),
			"Write it from the root, or starting with ~/.")
	}
	at := locate(path)
	if at.err != nil {
		return refuse(fmt.Sprintf("Cannot look at the data root %s (%s): %v.", path, by, at.err),
			"Name a folder that you can read, or that doesn't exist yet.")
	}
	if at.info != nil && !at.info.IsDir() {
		return refuse(fmt.Sprintf("The data root %s (%s) is not a folder.", path, by),
			"Name a folder of its own.")
	}
	const fix = "Name a folder of its own, such as ~/.local/state/spaces/<project>."
	for _, home := range h.homes() {
		if contains(at.resolved, locate(home).resolved) {
			return refuse(fmt.Sprintf("The data root %s (%s) holds the home directory %s.", path, by, home), fix)
		}
	}
	// In either direction: what lies in the configuration directory is never granted,
	// and the data root's sockets must be.
	if config := locate(h.ConfigDir()).resolved; contains(at.resolved, config) || contains(config, at.resolved) {
		return refuse(fmt.Sprintf("The data root %s (%s) and the configuration directory %s lie in one another.", path, by, h.ConfigDir()), fix)
	}
	return DataRoot(at.resolved), nil
}

// Ensure makes the data root and its folders, 0700, and checks that those that exist
// are the caller's and nobody else's.
func (r DataRoot) Ensure(h Host) error {
	// A link put in since the path was resolved would move the state elsewhere.
	if at := locate(string(r)); at.err != nil {
		return fmt.Errorf("cannot look at the data root %s: %w", r, at.err)
	} else if at.resolved != string(r) {
		return unfit(string(r), fmt.Sprintf("a symlink now leads from it to %s", at.resolved), "Remove it.")
	}
	if err := os.MkdirAll(filepath.Dir(string(r)), 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the data root: %w", err)
	}
	for _, folder := range r.folders() {
		if err := ensureFolder(folder, h.UID); err != nil {
			return err
		}
	}
	return nil
}

// folders are the data root and what is in it, each after the one it lies in.
func (r DataRoot) folders() []string {
	folders := []string{string(r)}
	for _, part := range []string{PartSock, PartStore, PartHost, PartGitHost, PartRuns, PartState} {
		folders = append(folders, r.Part(part))
	}
	// Each socket's own directory is what a space mounts, so it is there before the
	// process that listens in it.
	for _, socket := range []string{"agent", "human", "launch", "git", "relay"} {
		folders = append(folders, filepath.Join(r.Part(PartSock), socket))
	}
	return folders
}

// ensureFolder makes one private folder, or checks the one that is there.
func ensureFolder(path string, uid int) error {
	switch err := os.Mkdir(path, 0o700); {
	case err == nil:
		// A umask may have taken even the owner's bits.
		if err := os.Chmod(path, 0o700); err != nil {
			return fmt.Errorf("cannot make %s private: %w", path, err)
		}
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("cannot make a folder of the data root: %w", err)
	}
	return checkFolder(path, uid)
}

// checkFolder refuses a folder that isn't the caller's alone.
func checkFolder(path string, uid int) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("cannot look at a folder of the data root: %w", err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return unfit(path, "it is a symlink", "The data root holds its own folders, so remove it.")
	case !info.IsDir():
		return unfit(path, "it is not a folder", "Move it away.")
	case ownerOf(info) != uid:
		return unfit(path, fmt.Sprintf("it belongs to user %d, not to you (%d)", ownerOf(info), uid), "Make it yours (chown), or name another data root.")
	case info.Mode().Perm() != 0o700:
		return unfit(path, fmt.Sprintf("its mode is %04o, which lets others in or you out", info.Mode().Perm()), fmt.Sprintf("Type: chmod 700 %s", path))
	}
	return nil
}

// unfit refuses a path of the data root that others may have had a hand in, or that
// isn't what belongs there: only a person can tell what to do with it.
func unfit(path, what, fix string) *reconcile.Refusal {
	return &reconcile.Refusal{Code: reconcile.CodeDataRoot, Text: fmt.Sprintf("%s can't be used: %s.", path, what), Fix: fix}
}
