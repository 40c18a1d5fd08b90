package policy

import (
	"errors"
	"testing"
)

func TestMayHold(t *testing.T) {
	service := Holder{}
	core := Holder{Core: true}
	role := Holder{Role: "builder", Holds: []string{HoldLaunch}}
	for _, c := range []struct {
		name   string
		holder Holder
		err    error
		code   HoldCode
	}{
		{"service agent", service, MayHoldSocket(service, SocketAgent), ""},
		{"service human", service, MayHoldSocket(service, SocketHuman), ""},
		{"service launch", service, MayHoldSocket(service, SocketLaunch), ""},
		{"service git", service, MayHoldSocket(service, SocketGit), ""},
		{"service relay", service, MayHoldSocket(service, "relay"), CodeHoldRelay},
		{"core relay", core, MayHoldSocket(core, "relay"), CodeHoldRelay},
		{"service other", service, MayHoldSocket(service, "docker"), CodeHoldUnknown},
		{"service empty", service, MayHoldSocket(service, ""), CodeHoldUnknown},
		{"service path", service, MayHoldSocket(service, "../relay"), CodeHoldUnknown},
		{"role agent", role, MayHoldSocket(role, SocketAgent), ""},
		{"role human", role, MayHoldSocket(role, SocketHuman), CodeHoldHuman},
		{"role launch", role, MayHoldSocket(role, SocketLaunch), ""},
		{"role git", role, MayHoldSocket(role, SocketGit), CodeHoldNotHeld},
		{"role relay", role, MayHoldSocket(role, "relay"), CodeHoldRelay},
		{"role that holds human", role, MayHoldSocket(Holder{Role: "x", Holds: []string{SocketHuman}}, SocketHuman), CodeHoldHuman},
		{"core store", core, MayHoldData(core, DataStore, true), ""},
		{"core host", core, MayHoldData(core, DataHost, false), ""},
		{"core host writable", core, MayHoldData(core, DataHost, true), CodeHoldReadOnly},
		{"service store", service, MayHoldData(service, DataStore, false), CodeHoldStore},
		{"service host", service, MayHoldData(service, DataHost, false), ""},
		{"service host writable", service, MayHoldData(service, DataHost, true), CodeHoldReadOnly},
		{"role store", role, MayHoldData(role, DataStore, false), CodeHoldData},
		{"role host", role, MayHoldData(role, DataHost, false), CodeHoldData},
		{"service sock", service, MayHoldData(service, "sock", false), CodeHoldUnknown},
		{"role holds launch", role, MayRoleHold(HoldLaunch), ""},
		{"role holds git", role, MayRoleHold(HoldGit), ""},
		{"role holds human", role, MayRoleHold(SocketHuman), CodeHoldUnknown},
	} {
		var bad *HoldError
		switch {
		case c.code == "" && c.err != nil:
			t.Errorf("%s: %v", c.name, c.err)
		case c.code != "" && (!errors.As(c.err, &bad) || bad.Code != c.code || bad.Message == "" || bad.Fix == ""):
			t.Errorf("%s: %v, want %s", c.name, c.err, c.code)
		}
	}
}
