package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/net/netutil"

	"github.com/gatewright/gateway"
)

const (
	defaultListen         = "127.0.0.1:9000"
	defaultMaxConnections = 10_000
)

// listen opens the server's address. Connections beyond the configured number wait until others have closed.
func listen(ctx context.Context, address string, c gateway.ServerConfig) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program; choose another address with -listen HOST:PORT", address)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with -listen HOST:PORT", address, err)
	}
	most := defaultMaxConnections
	if c.MaxConnections != nil {
		most = *c.MaxConnections
	}
	if most == 0 {
		return listener, nil
	}
	return netutil.LimitListener(listener, most), nil
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// baseURL returns where a client on this machine finds a listener.
func baseURL(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://127.0.0.1:" + port
	}
	return "http://" + address.String()
}
