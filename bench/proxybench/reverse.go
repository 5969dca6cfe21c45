package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// newTransport is the one that the reverse proxy and the lean proxy use: net/http's own, with room for as many idle
// connections as there are clients, so that none of them is dialled anew.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     55 * time.Second,
		DisableCompression:  true,
	}
}

// reverseProxy is httputil.ReverseProxy with nothing to do but to pass on. It reads a request's body before it sends it,
// as every proxy must that may have to send it again, and flushes at once. With pool it takes its copy buffers from one.
func reverseProxy(target *url.URL, pool bool) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     newTransport(),
		FlushInterval: -1,
	}
	if pool {
		proxy.BufferPool = &bufferPool{}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
