//go:build race

package main

// storySpeed: under the race detector sixty hosts need the machine's time.
const storySpeed = "2"
