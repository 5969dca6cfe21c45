// Package bench compares the gateway with what else there is: other libraries inside a process ([BenchmarkChat],
// [BenchmarkStream] and the program inprocess), and other proxies over sockets (the program proxybench).
// docs/performance.md says how to run them and what came out.
package bench
