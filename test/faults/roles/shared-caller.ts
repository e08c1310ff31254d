/** Asks for the answer of a shared call. Where it is the one to make the call it says so; it answers once it is told to. */

import { coalesce, Millpond } from '../../../src/index.ts'
import { config, hearing, say, sayTrouble } from './role.ts'

export interface SharedCallerConfig {
  url: string
  key: string
  timeout: number
}

const { url, key, timeout } = config<SharedCallerConfig>()
const pond = await Millpond.open(url)
sayTrouble(pond)
const ask = coalesce(
  async (asked: string) => {
    say('called')
    await hearing('answer')
    return `the answer to ${asked}`
  },
  { key: (asked) => asked, timeout, shared: pond, name: 'shared' },
)
pond.on('pushed', () => say('aboard'))
ask(key).then(
  (answer) => say('answered', { answer }),
  (error: Error) => say('failed', { message: error.message }),
)
