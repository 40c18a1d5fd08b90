// Command faultproxy runs a faultproxy for scripts, until it is interrupted:
//
//	faultproxy -listen SOCKET -engine SOCKET -record FILE ['FAULT' …]
//
// A FAULT is "ACTION WHEN NTH METHOD REGEXP": "cut after 1 POST /start$". FILE gets one
// line for each call, "METHOD /path", soon after it came.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

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
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	fmt.Println(p.Endpoint) // ready
	recorded := waitFor(stop, p, *record)
	return errors.Join(p.Close(), recorded)
}

// waitFor writes down what comes until it is time to stop.
func waitFor(stop <-chan os.Signal, p *faultproxy.Proxy, record string) error {
	if record == "" {
		<-stop
		return nil
	}
	f, err := os.Create(record)
	if err != nil {
		return err
	}
	written := 0
	for stopped := false; !stopped; {
		select {
		case <-stop:
			stopped = true
		case <-time.After(10 * time.Millisecond):
		}
		for _, c := range p.Calls()[written:] {
			if _, err := fmt.Fprintln(f, c); err != nil {
				return errors.Join(err, f.Close())
			}
			written++
		}
	}
	return f.Close()
}
