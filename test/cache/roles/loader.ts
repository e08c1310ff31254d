/** `loader.ts URL PREFIX`: a process with a cached function whose loader answers when the test says so. It ends with the test. */
import { Cache } from '../../../src/cache/index.ts'

const [url = '', prefix = ''] = process.argv.slice(2)
const say = (text: string) => void process.send?.(text)

const cache = await Cache.open(url, { prefix })
let calls = 0
let answer = () => {}
const get = cache.wrap(
  async (_: undefined, { signal }) => {
    calls++
    const value = `loaded ${calls}`
    signal.addEventListener('abort', () => say('aborted'))
    say('loading')
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    return value
  },
  { key: () => 'k', ttl: '1m' },
)

process.on('message', (message) => {
  if (message === 'answer') answer()
  if (message === 'get') {
    get(undefined).then(
      (value) => say(`got ${value}`),
      (error) => say(`failed ${String(error)}`),
    )
  }
})
process.on('disconnect', () => process.exit())
say('ready')
