interface Mail {
  to: string
}
const sent = Promise.withResolvers<string>()
const send = async (mail: Mail): Promise<void> => sent.resolve(mail.to)
// After the block:
if ((await sent.promise) !== 'a@example.org') throw new Error('not sent')
await pond.close()
