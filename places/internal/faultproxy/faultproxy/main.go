// Command faultproxy runs a faultproxy for scripts, until it is interrupted:
//
//	faultproxy -listen SOCKET -engine SOCKET -record FILE ['FAULT' …]
//
// A FAULT is "ACTION WHEN NTH METHOD REGEXP": "cut after 1 POST /start$". FILE gets one
// line for each call, "METHOD /path", when it ends.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"spaces/places/internal/faultproxy"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "faultproxy:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "", "socket to listen on")
	engine := flag.String("engine", "", "the engine's socket")
	record := flag.String("record", "", "file for the calls")
	flag.Parse()
	var faults []faultproxy.Fault
	for _, arg := range flag.Args() {
		f, err := faultproxy.Parse(arg)
		if err != nil {
			return err
		}
		faults = append(faults, f)
	}
	p, err := faultproxy.Start(*listen, strings.TrimPrefix(*engine, "unix://"), faults...)
	if err != nil {
		return err
	}
	fmt.Println(p.Endpoint) // ready
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
	if err := p.Close(); err != nil {
		return err
	}
	if *record == "" {
		return nil
	}
	var b strings.Builder
	for _, c := range p.Calls() {
		fmt.Fprintln(&b, c)
	}
	return os.WriteFile(*record, []byte(b.String()), 0o600)
}
