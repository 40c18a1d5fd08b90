package schema

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"spaces/gatekeeper/policy"
)

// The messages about variables and about each kind of block; see diag.go for the rest.

// Variables.

func diagMissingVariable(name string, r hcl.Range) *hcl.Diagnostic {
	return problem("missing-variable", "Variable without a value", at(r),
		fmt.Sprintf("The variable %q has no default and is not set. Set it with --var '%s=…', in a file given by --var-file, in the folder's auto.spacesvars, or in the environment as %s%s.", name, name, envPrefix, name))
}

func diagUndeclaredInFile(attr *hclsyntax.Attribute, meant string) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	return problem("undeclared-in-file", "No such variable", at(attr.NameRange).within(attr.SrcRange),
		fmt.Sprintf("There is no variable %q to set.%s Declare it with a variable block, or remove the line.", attr.Name, didYouMean(meant)))
}

func diagUndeclaredInFlag(name, meant string) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	return problem("undeclared-in-flag", "No such variable", place{},
		fmt.Sprintf("--var sets %q, and there is no such variable.%s Declare it with a variable block, or leave the flag out.", name, didYouMean(meant)))
}

func diagVarFileSyntax(fault string, where place) *hcl.Diagnostic {
	return problem("var-file-syntax", "Variables file can't be read", where,
		fmt.Sprintf("Here the file isn't values only, each as name = value: %q. More isn't shown, since it may be part of a secret.", fault))
}

func diagVarFileBlock(block *hclsyntax.Block) *hcl.Diagnostic {
	return problem("var-file-block", "Block in a variables file", at(block.DefRange()),
		"A variables file holds values only, each as name = value. Blocks stand in .hcl files.")
}

func diagVariableType(name, from, fault string, where place) *hcl.Diagnostic {
	return problem("variable-type", "Wrong type for a variable", where,
		fmt.Sprintf("The value of the variable %q, %s, isn't of its type: %s.", name, fromText(from), fault))
}

func diagVariableNull(name, from string, where place) *hcl.Diagnostic {
	return problem("variable-null", "Variable can't be null", where,
		fmt.Sprintf("The value of the variable %q, %s, is null, and the variable says nullable = false.", name, fromText(from)))
}

func diagVariableSyntax(name, from, fault string, where place) *hcl.Diagnostic {
	return problem("variable-syntax", "Value can't be read", where,
		fmt.Sprintf("The value of the variable %q, %s, isn't an expression of constants: %s. A variable whose type isn't string, number or bool takes an expression, as it would stand in a variables file.", name, fromText(from), fault))
}

func diagVariableInvalid(name, from, message string, where place) *hcl.Diagnostic {
	return problem("variable-invalid", "Invalid value for a variable", where,
		strings.TrimSpace(fmt.Sprintf("The value of the variable %q, %s, doesn't meet this condition. %s", name, fromText(from), message)))
}

func fromText(from string) string {
	if from == "default" {
		return "its default"
	}
	return "set by " + from
}

// Project and install.

func diagEndpoint(given string, where place) *hcl.Diagnostic {
	return problem("endpoint", "Invalid endpoint", where,
		fmt.Sprintf("\"endpoint\" can't be %q: it is a unix socket on this host, \"unix:///run/user/1000/docker.sock\" for example, and ends with .sock.", given))
}

func diagEndpointMissing(block *hclsyntax.Block) *hcl.Diagnostic {
	return problem("endpoint-missing", "No endpoint", at(block.DefRange()),
		"A containerized install names its engine; no other setting or variable chooses it. Write endpoint = \"unix:///run/user/UID/docker.sock\".")
}

func diagEndpointLocal(where place) *hcl.Diagnostic {
	return problem("endpoint-local", "Endpoint of a local install", where,
		"A local install uses no engine, so that it can't reach one by accident. Remove the endpoint, or write mode = \"containerized\".")
}

func diagAcceptCode(given, meant string, r, context hcl.Range) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	return problem("accept-code", "Refusal can't be accepted", at(r).within(context),
		fmt.Sprintf("%q is no refusal that a person can overrule in the files; these are %s.", given, quoted(acceptCodes, "and"))+didYouMean(meant))
}

// Images.

func diagImageSource(block *hclsyntax.Block, given []string) *hcl.Diagnostic {
	detail := "An image is made in one way, and this one says none."
	if len(given) > 1 {
		detail = fmt.Sprintf("An image is made in one way, and this one has %s.", listed(given, "and"))
	}
	return problem("image-source", "One source of an image", at(block.DefRange()),
		detail+" Write binary = \"spaces\", a build block, or reference = \"…@sha256:…\".")
}

func diagBinary(given string, where place) *hcl.Diagnostic {
	return problem("binary", "Invalid binary", where,
		fmt.Sprintf("\"binary\" can't be %q. Write \"spaces\" for this very executable, or the path of a static one: absolute, or beside these files with \"./\".", given))
}

func diagBuildContext(given string, where place) *hcl.Diagnostic {
	return problem("build-context", "Invalid build context", where,
		fmt.Sprintf("\"context\" can't be %q. Write a directory: absolute, or beside these files with \"./\".", given))
}

func diagDockerfile(given string, where place) *hcl.Diagnostic {
	return problem("dockerfile", "Invalid path", where,
		fmt.Sprintf("\"dockerfile\" can't be %q: it is a path inside the build context, in its shortest form.", given))
}

func diagImageReference(given string, err error, where place) *hcl.Diagnostic {
	return problem("image-reference", "Invalid image reference", where,
		fmt.Sprintf("\"reference\" can't be %q: %s. Write a name and its digest, such as \"node@sha256:…\".", given, err))
}

func diagImageUnpinned(given string, where place) *hcl.Diagnostic {
	return warning("image-unpinned", "Image without a digest", where,
		fmt.Sprintf("%q may mean another image tomorrow, and nothing in the files will have changed. Add the digest, @sha256:…; docker image inspect shows it as RepoDigests.", given))
}

func diagTagOfReference(where place) *hcl.Diagnostic {
	return problem("tag-of-reference", "Tag beside a reference", where,
		"\"tag\" names an image that is made here; an image with a reference carries its tag in it. Remove the tag.")
}

func diagTag(given string, where place) *hcl.Diagnostic {
	return problem("tag", "Invalid tag", where,
		fmt.Sprintf("\"tag\" can't be %q: a tag is made of letters, digits, underscores, dots and hyphens, begins with neither dot nor hyphen, and is 128 long at most.", given))
}

// Networks.

func diagUplinkInternal(where place) *hcl.Diagnostic {
	return problem("uplink-internal", "Internal uplink", where,
		"An uplink is the network through which proxies leave, so it is not internal. Remove one of the two attributes.")
}

func diagNetworkReason(block *hclsyntax.Block, where place) *hcl.Diagnostic {
	if where.subject.Filename == "" {
		where = at(block.DefRange())
	}
	return problem("network-reason", "No reason given", where,
		"A network that is not internal lets every space on it reach any address. Say why: reason = \"…\".")
}

func diagNoEgressOutside(where place) *hcl.Diagnostic {
	return problem("no-egress-outside", "Network isn't internal", where,
		"egress = \"none\" says that nothing leaves an internal network, and this one is not internal: it would be untrue. Remove it.")
}

func diagRangeWithoutSubnet(where place) *hcl.Diagnostic {
	return problem("range-without-subnet", "No subnet given", where,
		"\"ip_range\" is the part of the subnet that addresses are given out from. Write the subnet too.")
}

func diagRangeOutside(ipRange, subnet string, where place) *hcl.Diagnostic {
	return problem("range-outside", "Range outside the subnet", where,
		fmt.Sprintf("\"ip_range\" is the part of the subnet that addresses are given out from, and %s is not in %s.", ipRange, subnet))
}

func diagSubnetsOverlap(subnet string, other Address, otherSubnet string, where place) *hcl.Diagnostic {
	return problem("subnets-overlap", "Subnets overlap", where,
		fmt.Sprintf("%s and %s of %s hold the same addresses, and the engine makes no two such networks. Choose another subnet.", subnet, otherSubnet, other))
}

func diagNetworkWithoutList(a Address, where place) *hcl.Diagnostic {
	return warning("network-without-list", "No way out", where,
		fmt.Sprintf("Spaces are on %s, an internal network without an egress list: they reach each other and nothing else. If that is meant, write egress = \"none\".", a))
}

// Egress lists.

func diagEgressEntry(given string, err *policy.EntryError, where place) *hcl.Diagnostic {
	detail := fmt.Sprintf("%s. %s.", err.Message, upperFirst(err.Fix))
	if !strings.HasPrefix(detail, `"`) {
		detail = fmt.Sprintf("%q can't stand in a list: %s", given, detail)
	}
	return problem("egress-entry", "Invalid egress entry", where, detail)
}

func diagDuplicateEntry(entry string, r, first hcl.Range) *hcl.Diagnostic {
	return problem("duplicate-entry", "Entry listed twice", at(r),
		fmt.Sprintf("%s stands in this list already, at %s. Remove one.", entry, lineOf(first)))
}

func diagListOnUplink(a Address, where place) *hcl.Diagnostic {
	return problem("list-on-uplink", "List for an uplink", where,
		fmt.Sprintf("%s is an uplink, which only proxies join; a list is for the network of the spaces that use it.", a))
}

func diagListOutside(a Address, where place) *hcl.Diagnostic {
	return problem("list-outside", "List for a network that isn't internal", where,
		fmt.Sprintf("Spaces on %s reach any address by themselves, so a list would hold nothing back. Make the network internal.", a))
}

func diagListAndNone(a Address, where place, none hcl.Range) *hcl.Diagnostic {
	return problem("list-and-none", "List for a network without egress", where,
		fmt.Sprintf("%s says egress = \"none\" at %s. Remove that, or the list.", a, lineOf(none)))
}

func diagTwoLists(network, other Address, where place, first hcl.Range) *hcl.Diagnostic {
	return problem("two-lists", "Two lists for one network", where,
		fmt.Sprintf("%s has the list %s at %s, and one proxy answers on each network. Put the entries in one list.", network, other, lineOf(first)))
}

func diagNotUplink(a Address, where place) *hcl.Diagnostic {
	return problem("not-uplink", "Not an uplink", where,
		fmt.Sprintf("Proxies leave through a network that only they may join, and %s doesn't say uplink = true.", a))
}

func diagNoUplink(where place) *hcl.Diagnostic {
	return problem("no-uplink", "No uplink", where,
		"The list's proxy needs a network to leave through. Write network \"uplink\" { uplink = true }.")
}

func diagManyUplinks(names []string, where place) *hcl.Diagnostic {
	return problem("many-uplinks", "Which uplink", where,
		fmt.Sprintf("There is more than one uplink network. Name the one that the list's proxy leaves through: uplink = %s.", listed(names, "or")))
}

// Grants.

func diagGrantKind(block *hclsyntax.Block, given []string) *hcl.Diagnostic {
	detail := "A grant gives one thing, and this one says none."
	if len(given) > 1 {
		detail = fmt.Sprintf("A grant gives one thing, and this one has %s.", listed(given, "and"))
	}
	return problem("grant-kind", "One source of a grant", at(block.DefRange()),
		detail+" Write one of directory, file, secret, socket, volume and data.")
}

func diagSecretWritable(where place) *hcl.Diagnostic {
	return problem("secret-writable", "Writable secret", where,
		"A secret is always read-only. Remove the access attribute.")
}

func diagCreate(kind string, where place) *hcl.Diagnostic {
	return problem("create", "Can't be created", where,
		fmt.Sprintf("create = true makes a missing directory, and this grant is a %s. Remove it.", kind))
}

func diagSocketWritable(a Address, where place) *hcl.Diagnostic {
	return problem("socket-writable", "Writable socket", where,
		fmt.Sprintf("%s gives a socket's directory with access = \"rw\": a space that may write it could put a socket of its own there. Read-only is enough to connect; only the core, which makes sockets, may write.", a))
}

// Roles.

func diagRoleSpace(a Address, lifecycle string, where place) *hcl.Diagnostic {
	return problem("role-space", "Not launched on request", where,
		fmt.Sprintf("A role is launched when someone asks for it, and the lifecycle of %s is %s. Write lifecycle = \"on_request\" there.", a, lifecycle))
}

func diagHold(grant Address, err *policy.HoldError, where place) *hcl.Diagnostic {
	return problem("hold", "Space may not hold this", where,
		fmt.Sprintf("%s can't be given to this space: %s. %s.", grant, err.Message, upperFirst(err.Fix)))
}

// Spaces.

func diagTwoCores(a, other Address, where place, first hcl.Range) *hcl.Diagnostic {
	return problem("two-cores", "Two cores", where,
		fmt.Sprintf("The lifecycle of %s is core, and so is that of %s, at %s. A project has one core.", a, other, lineOf(first)))
}

func diagUser(given string, where place) *hcl.Diagnostic {
	return problem("user", "Invalid user", where,
		fmt.Sprintf("\"user\" can't be %q. Write a name or number, and a group after a colon if need be: \"1000:1000\". To have the image's, leave it out.", given))
}

func diagSignal(given, meant string, where place) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	return problem("signal", "Unknown signal", where,
		fmt.Sprintf("\"stop_signal\" can't be %q. Write a signal's whole name, such as \"SIGTERM\".", given)+didYouMean(meant))
}

func diagAttachedTwice(network Address, r, first hcl.Range) *hcl.Diagnostic {
	return problem("attached-twice", "Network named twice", at(r),
		fmt.Sprintf("The space joins %s at %s already. Name it once: in networks, or in a network block where it needs aliases or an address.", network, lineOf(first)))
}

func diagAlias(given string, where place) *hcl.Diagnostic {
	return problem("alias", "Invalid alias", where,
		fmt.Sprintf("%q can't be an alias: it is a name in DNS, made of %s, %d at most.", given, nameRule, maxName))
}

func diagNameOnNetwork(name string, network, other Address, where place) *hcl.Diagnostic {
	return problem("name-on-network", "Name taken on a network", where,
		fmt.Sprintf("%s answers to %q on %s already, by its own name or an alias. Choose another alias.", other, name, network))
}

func diagAddressOnNetwork(address string, network, other Address, where place) *hcl.Diagnostic {
	return problem("address-on-network", "Address taken on a network", where,
		fmt.Sprintf("%s has the address %s on %s already. Choose another.", other, address, network))
}

func diagAddressWithoutSubnet(network Address, where place) *hcl.Diagnostic {
	return problem("address-without-subnet", "No subnet given", where,
		fmt.Sprintf("A space can ask for an address where the network says its range, and %s doesn't. Write a subnet there.", network))
}

func diagAddressOutside(address string, network Address, subnet string, where place) *hcl.Diagnostic {
	return problem("address-outside", "Address outside the subnet", where,
		fmt.Sprintf("%s is not in %s, the subnet of %s.", address, subnet, network))
}

func diagAddressReserved(address, subnet string, where place) *hcl.Diagnostic {
	return problem("address-reserved", "Reserved address", where,
		fmt.Sprintf("%s is the first or last address of %s, which no container can have. Choose another.", address, subnet))
}

func diagJoinsUplink(network Address, where place) *hcl.Diagnostic {
	return problem("joins-uplink", "Space on an uplink", where,
		fmt.Sprintf("Only proxies may join %s. Put the space on an internal network, with an egress list for what it needs to reach.", network))
}

func diagProxyElsewhere(proxy Address, lists []string, where place) *hcl.Diagnostic {
	write := "None of its networks has a list; remove the attribute."
	if len(lists) > 0 {
		write = fmt.Sprintf("Write %s.", listed(lists, "or"))
	}
	return problem("proxy-elsewhere", "List of another network", where,
		fmt.Sprintf("%s is for a network that the space isn't on. %s", proxy, write))
}

func diagProxyUnnamed(lists []string, where place) *hcl.Diagnostic {
	return problem("proxy-unnamed", "Which list", where,
		fmt.Sprintf("The space is on networks with different lists. Name the one it uses: proxy = %s.", listed(lists, "or")))
}

func diagSameTarget(what, other, target string, where place) *hcl.Diagnostic {
	return problem("same-target", "Two mounts in one place", where,
		fmt.Sprintf("The target %s is that of %s and of %s, and one would hide the other. Choose another target.", target, other, what))
}

func diagTargetInside(what, target, other, otherTarget string, where place) *hcl.Diagnostic {
	return problem("target-inside", "Mount inside another", where,
		fmt.Sprintf("The target %s of %s lies in %s, the target of %s, and would hide that part of it. Choose a target outside it.", target, what, otherTarget, other))
}

func diagTmpfsTwice(path string, r, first hcl.Range) *hcl.Diagnostic {
	return problem("tmpfs-twice", "Listed twice", at(r),
		fmt.Sprintf("A tmpfs at %s stands at %s already. Remove one.", path, lineOf(first)))
}

func diagMode(given string, where place) *hcl.Diagnostic {
	return problem("mode", "Invalid mode", where,
		fmt.Sprintf("\"mode\" can't be %q. Write a directory's permissions as a string of octal digits, such as \"0700\".", given))
}

func diagPublishHost(given string, where place) *hcl.Diagnostic {
	return problem("publish-host", "Invalid IP address", where,
		fmt.Sprintf("\"host\" can't be %q. Write an address of the host, such as \"127.0.0.1\" for the host alone.", given))
}

func diagPublishReason(host string, block *hclsyntax.Block, where place) *hcl.Diagnostic {
	if where.subject.Filename == "" {
		where = at(block.DefRange())
	}
	return problem("publish-reason", "No reason given", where,
		fmt.Sprintf("%s is not a loopback address: others than this host may reach the port. Say why, reason = \"…\", or write \"127.0.0.1\".", host))
}

func diagPublishInternal(where place) *hcl.Diagnostic {
	return problem("publish-internal", "Port of an internal space", where,
		"The engine publishes nothing from an internal network, and the space is on no other. Put it on a network with internal = false and a reason.")
}

func diagPortTaken(host string, port int, protocol string, other Address, where place) *hcl.Diagnostic {
	return problem("port-taken", "Port published twice", where,
		fmt.Sprintf("Port %d/%s of %s is published for %s already. Choose another port.", port, protocol, host, other))
}

func diagHealthcheckDisabled(where place) *hcl.Diagnostic {
	return problem("healthcheck-disabled", "Healthcheck both off and on", where,
		"disable = true turns the image's healthcheck off, and the block says more. Remove the rest, or this.")
}

func diagHealthcheckTwice(where place) *hcl.Diagnostic {
	return problem("healthcheck-twice", "Healthcheck said twice", where,
		"A healthcheck has one test: command, a list run as it is, or shell, a string for the image's /bin/sh. Remove one.")
}

func diagHealthcheckEmpty(block *hclsyntax.Block) *hcl.Diagnostic {
	return problem("healthcheck-empty", "Empty healthcheck", at(block.DefRange()),
		"The block says nothing. Write command, or disable = true, or what is to differ from the image's.")
}

func diagRestartAlways(where place) *hcl.Diagnostic {
	return problem("restart-always", "Restart policy isn't in the language", where,
		"\"always\" starts a space again that a person has stopped, whenever the engine starts. Write \"unless-stopped\", which doesn't.")
}

func diagRestart(given string, where place) *hcl.Diagnostic {
	return problem("restart", "Unknown restart policy", where,
		fmt.Sprintf("\"restart\" can't be %q. Write \"no\", \"on-failure\", \"on-failure:5\" for five times at most, or \"unless-stopped\".", given))
}

func diagServiceOnly(name, lifecycle string, where place) *hcl.Diagnostic {
	return problem("service-only", "Only for a service", where,
		fmt.Sprintf("%q is for spaces that apply starts, and the host starts one whose lifecycle is %s. Remove it.", name, lifecycle))
}

func diagDependsOnLaunched(need Address, lifecycle string, where place) *hcl.Diagnostic {
	return problem("depends-on-launched", "Dependency that apply doesn't start", where,
		fmt.Sprintf("The lifecycle of %s is %s: the host starts it, so apply would wait in vain. Remove it.", need, lifecycle))
}

func diagDependencyCycle(names []string, where place) *hcl.Diagnostic {
	return problem("dependency-cycle", "Dependencies in a circle", where,
		fmt.Sprintf("Each of these waits for the next: %s. Take one out.", strings.Join(names, " → ")))
}

// Loosenings.

func diagLoosenKind(given, meant string, r, context hcl.Range) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	kinds := "cap_add, device, grant_holds_configuration, grant_source_writable, group_add, init, new_privileges, seccomp, secret_env, sysctl, tmp_exec and writable_root"
	return problem("loosen-kind", "Unknown kind of loosening", at(r).within(context),
		fmt.Sprintf("%q can't be loosened.%s The kinds are %s.", given, didYouMean(meant), kinds))
}

func diagLoosenValue(kind, want string, where place) *hcl.Diagnostic {
	return problem("loosen-value", "Wrong value of a loosening", where,
		fmt.Sprintf("loosen %q has one value: write value = %s. To keep the hardening, remove the block.", kind, want))
}

func diagLoosenNothing(kind string, where place) *hcl.Diagnostic {
	return problem("loosen-nothing", "Empty loosening", where,
		fmt.Sprintf("loosen %q names nothing to loosen. Remove the block.", kind))
}

func diagLoosenedTwice(kind, value string, r, first hcl.Range) *hcl.Diagnostic {
	return problem("loosened-twice", "Loosened twice", at(r),
		fmt.Sprintf("loosen %q gives %s at %s already. Remove one, so that one reason stands for it.", kind, value, lineOf(first)))
}

func diagLoosenedGrant(grant Address, r hcl.Range) *hcl.Diagnostic {
	return problem("loosened-grant", "Loosening of a grant that isn't given", at(r),
		fmt.Sprintf("The space doesn't have %s in its grants. Remove it here.", grant))
}

func diagCapabilityAll(where place) *hcl.Diagnostic {
	return problem("capability-all", "All capabilities", where,
		"\"ALL\" isn't in the language: a plan could not say what the space may do. Name each capability it needs.")
}

func diagCapability(given, meant string, where place) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	return problem("capability", "Unknown capability", where,
		fmt.Sprintf("%q is no capability of the kernel, as written here: upper case, without CAP_.", given)+didYouMean(meant))
}

func diagDevice(given string, where place) *hcl.Diagnostic {
	return problem("device", "Invalid device", where,
		fmt.Sprintf("%q can't be a device: write its path below /dev, such as \"/dev/fuse\". It has the same path in the space.", given))
}

func diagGroup(given string, where place) *hcl.Diagnostic {
	return problem("group", "Invalid group", where,
		fmt.Sprintf("%q can't be a group: write its number or its name.", given))
}

func diagSysctl(given string, where place) *hcl.Diagnostic {
	return problem("sysctl", "Invalid kernel setting", where,
		fmt.Sprintf("%q can't be a setting: write its name, an equals sign and the value, such as \"net.core.somaxconn=1024\".", given))
}

func diagSysctlHost(name string, where place) *hcl.Diagnostic {
	return problem("sysctl-host", "Kernel setting of the host", where,
		fmt.Sprintf("%q is one setting for the whole host. A container has its own under net., fs.mqueue. and kernel.msg, sem and shm.", name))
}

func diagTmpExecPath(path string, r hcl.Range) *hcl.Diagnostic {
	return problem("tmp-exec-path", "No such tmpfs", at(r),
		fmt.Sprintf("The space has no tmpfs at %q. Write /tmp, or a path of its tmpfs.", path))
}

func diagSecretEnvName(name string, there bool, r hcl.Range) *hcl.Diagnostic {
	detail := fmt.Sprintf("The space's env has no %q. Remove it here.", name)
	if there {
		detail = fmt.Sprintf("The value of %q isn't sensitive, so there is nothing to loosen. Remove it here, or say sensitive = true of the variable it comes from.", name)
	}
	return problem("secret-env-name", "Nothing to loosen", at(r), detail)
}

// Assertions.

func diagAssertSentence(where place) *hcl.Diagnostic {
	return problem("assert-sentence", "Sentence can't be printed", where,
		"An assertion's label is the sentence that is printed where it is broken, on one line, and this one is blank, or holds a line break or a character that does not print.")
}

func diagAssertNothing(where place) *hcl.Diagnostic {
	return problem("assert-nothing", "Assertion says nothing", where,
		fmt.Sprintf("The block says of nothing that it can't be. Write at least one of %s.", listed(claims, "and")))
}

func diagAssertNobody(where place) *hcl.Diagnostic {
	return warning("assert-nobody", "Assertion about no space", where,
		"\"from\" comes to no space, so nothing can break the assertion. For every space, write \"*\".")
}

func diagAssertEmpty(name string, where place) *hcl.Diagnostic {
	return problem("assert-empty", "Assertion that always holds", where,
		fmt.Sprintf("%q names nothing, so nothing can break it. Name what can't be, or remove it.", name))
}

func diagAssertIdle(why string, where place) *hcl.Diagnostic {
	return problem("assert-idle", "Assertion that always holds", where,
		fmt.Sprintf("Nothing can break this: %s. Remove it, since it promises nothing.", why))
}

func diagAssertHost(given string, err *policy.EntryError, where place) *hcl.Diagnostic {
	return problem("assert-host", "Invalid host and port", where,
		fmt.Sprintf("\"cannot\" can't be %q: %s. %s.", given, err.Message, upperFirst(err.Fix)))
}

func diagAssertPort(given string, where place) *hcl.Diagnostic {
	return problem("assert-port", "Invalid port", where,
		fmt.Sprintf("\"cannot_publish\" can't be %q. Write a port of the host, \"off-loopback\" for every port that others than this host may reach, or \"*\" for every port.", given))
}

// Moved blocks, and what is protected.

func diagMovedAddress(name string, where place) *hcl.Diagnostic {
	return problem("moved-address", "Invalid address", where,
		fmt.Sprintf("%q of a moved block is the address of a space, as it stands: nothing is computed. Write %s = space.NAME, or space.NAME[\"KEY\"] for one that for_each makes.", name, name))
}

func diagMovedKind(kind string, where place) *hcl.Diagnostic {
	why := map[string]string{
		"network": "A network can't be renamed on the engine, and holds nothing: a renamed one is made, its spaces join it, and the old one goes. Remove the block.",
		"grant":   "Nothing is named after a grant: its name may change freely. A volume is named by the volume attribute, which can't change without another volume. Remove the block.",
		"image":   "Nothing that runs is named after an image: its name may change freely. Remove the block.",
		"egress":  "A list's proxy holds nothing that another one doesn't. Remove the block.",
		"role":    "Nothing that runs is named after a role: its name may change freely. Remove the block.",
	}[kind]
	return problem("moved-kind", "Only spaces move", where, fmt.Sprintf("%s can't be moved. %s", upperFirst(article(kind)), why))
}

func diagMovedDeclared(from Address, block *hclsyntax.Block, where place) *hcl.Diagnostic {
	return problem("moved-declared", "Still there", where,
		fmt.Sprintf("%s is to move, and stands at %s. Rename that block, or remove this one.", from, lineOf(block.DefRange())))
}

func diagMovedUndeclared(to Address, meant string, where place) *hcl.Diagnostic {
	if meant != "" {
		meant = Address{Kind: to.Kind, Name: meant}.String()
	}
	return problem("moved-undeclared", "Moved to nowhere", where,
		fmt.Sprintf("There is no %s to take over.%s Declare it, or remove the moved block.", to, didYouMean(meant)))
}

func diagMovedTwice(name string, a Address, first *hclsyntax.Block, where place) *hcl.Diagnostic {
	return problem("moved-twice", "Moved twice", where,
		fmt.Sprintf("%s is %q of the moved block at %s already, and one space takes over from one other. Remove one of the two.", a, name, lineOf(first.DefRange())))
}

func diagMovedCycle(a Address, where place) *hcl.Diagnostic {
	return problem("moved-cycle", "Moved in a circle", where,
		fmt.Sprintf("Following the moved blocks from %s leads back to it. Remove those that are undone.", a))
}

func diagMovedToBlock(to Address, where place) *hcl.Diagnostic {
	return problem("moved-to-block", "Which instance", where,
		fmt.Sprintf("%s has for_each, and one instance moves to one other. Write which: %s[\"KEY\"].", to, to))
}

func diagMovedLifecycle(to Address, lifecycle Lifecycle, where place) *hcl.Diagnostic {
	return problem("moved-lifecycle", "Not apply's to move", where,
		fmt.Sprintf("The lifecycle of %s is %q: its containers aren't made by apply, and carry nothing over. Remove the moved block.", to, lifecycle))
}

func diagProtectGrant(kind string, where place) *hcl.Diagnostic {
	return problem("protect-grant", "Nothing to protect", where,
		fmt.Sprintf("What a %s grant gives is never removed by this program. Remove the line; protect is for a volume.", kind))
}
