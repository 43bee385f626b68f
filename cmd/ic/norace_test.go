//go:build !race

package main

// storySpeed is how fast the demo's clock runs in the story.
const storySpeed = "3"
