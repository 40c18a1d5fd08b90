// Command payload is what the test's spaces run: its first argument says what it does.
// It is static, so that an image can hold it alone.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	verb, rest := "wait", []string{}
	if len(os.Args) > 1 {
		verb, rest = os.Args[1], os.Args[2:]
	}
	switch verb {
	case "wait":
		wait()
	case "say":
		say(rest)
		wait()
	case "wait-unless":
		waitUnless(rest[0])
	case "ok":
	case "fail":
		os.Exit(3)
	case "resolve":
		resolve(rest[0])
	case "dial":
		dial(rest[0], rest[1])
	case "greet":
		greet(rest[0])
	case "serve-dns":
		serveDNS(rest[0])
	default:
		fmt.Fprintln(os.Stderr, "payload knows no", verb)
		os.Exit(2)
	}
}

func wait() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	<-ended
}

// say prints each text, with Go's escapes, on standard output and then on standard error.
func say(texts []string) {
	for _, text := range texts {
		if unquoted, err := strconv.Unquote(`"` + text + `"`); err == nil {
			text = unquoted
		}
		fmt.Println("out", text)
		fmt.Fprintln(os.Stderr, "err", text)
	}
}

// waitUnless fails once a file is there.
func waitUnless(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			os.Exit(4)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// resolve asks the resolver of resolv.conf for a name, and says what came of it.
func resolve(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	addresses, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, name)
	fmt.Println(addresses, err)
	if err != nil {
		os.Exit(1)
	}
}

// dial connects and says what it was greeted with.
func dial(network, address string) {
	conn, err := net.DialTimeout(network, address, 3*time.Second)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	greeting := make([]byte, 64)
	n, err := conn.Read(greeting)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(string(greeting[:n]))
}

// greet says hello to whoever connects.
func greet(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		fmt.Fprint(conn, "hello")
		_ = conn.Close()
	}
}

// serveDNS answers every question with 192.0.2.1 and prints a line for each.
func serveDNS(address string) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	query := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(query)
		if err != nil || n < 12 {
			continue
		}
		fmt.Printf("query %q\n", query[12:n])
		_, _ = conn.WriteTo(answer(query[:n]), from)
	}
}

// answer turns a query of one question into an answer with one address (RFC 1035).
func answer(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	end = min(end+5, len(query)) // the root label, type and class
	out := append([]byte(nil), query[:end]...)
	out[2], out[3] = 0x81, 0x80 // a response, recursion desired and available
	copy(out[4:12], []byte{0, 1, 0, 1, 0, 0, 0, 0})
	return append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
}
