interface Email {
  to: string
}
// After the block:
await emails.push({ to: 'ada@example.org' })
await pond.close()
