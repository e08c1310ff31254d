import { batch } from 'millpond'

interface Mail {
  to: string
}
const transport = { send: async (mail: Mail): Promise<string> => `sent to ${mail.to}` }
// After the block:
if ((await send({ to: 'Ada' })) !== 'sent to Ada') throw new Error('not sent')
