/** `millpond push` and long runs: what comes by the standard input, and a stop in the middle. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run } from '../../src/cli/run.ts'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { ran } from './in-process.ts'
import { freshUrl } from './stores.ts'

/** Runs it with these chunks at the standard input, on a terminal if `isTTY`. */
async function fed(
  args: readonly string[],
  url: string,
  { chunks = [], isTTY = false, stop = new AbortController(), onErr = () => {} }: Partial<Fed> = {},
) {
  let [out, err] = ['', '']
  const terminal = {
    env: { MILLPOND_STORE: url },
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
      onErr(text)
    },
    isTTY: { err: isTTY },
    input: async function* () {
      yield* chunks
    },
  }
  const code = await run(args, terminal, stop.signal)
  return { code, out, err }
}
interface Fed {
  chunks: readonly string[]
  isTTY: boolean
  stop: AbortController
  onErr(text: string): void
}

test('data from the standard input, a job a line, and what is no JSON', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  const queue = pond.queue('mails')
  assert.equal((await fed(['push', 'mails', '-', '--new'], url, { chunks: ['{"to":', '"ada"}\n'] })).code, 0)
  assert.deepEqual((await queue.jobs('waiting'))[0]?.data, { to: 'ada' })
  const lines = Array.from({ length: 1234 }, (_, at) => `{"n":${at}}\n`).join('')
  const chunks = [lines.slice(0, 1003), lines.slice(1003, 5000), `\n${lines.slice(5000)}`.slice(1), '"last"']
  const many = await fed(['push', 'mails', '--lines', '--group', 'g', '--dry-run'], url, { chunks })
  assert.match(many.out, /^1,235 jobs\. Nothing was pushed\.$/m)
  assert.equal((await queue.stats()).counts.waiting, 1)
  assert.match(
    (await fed(['push', 'mails', '--lines', '--group', 'g'], url, { chunks })).out,
    /^1,235 jobs\. Pushed\.$/m,
  )
  assert.equal((await queue.stats()).counts.waiting, 1236)
  assert.equal((await queue.jobs('waiting', { text: '"last"', limit: 1 }))[0]?.group, 'g')

  const broken = await fed(['push', 'mails', '--lines'], url, { chunks: ['1\n{hidden\n3\n'] })
  assert.deepEqual([broken.code, /line 2 is not JSON/.test(broken.err), /hidden/.test(broken.err)], [2, true, false])
  for (const [args, message] of [
    [['push', 'mails', '{hidden'], /the data is not JSON/],
    [['push', 'mails', '1', '--lines'], /DATA or --lines/],
    [['push', 'mails', '--lines', '--key', 'k'], /--id and --key are of one job/],
    [['push', 'mails', '1', '--delay', '1s', '--run-at', '2030-01-01'], /not both/],
    [['push', 'mails', '1', '--run-at', 'tomorrow'], /--run-at is a time such as/],
    [['push', 'mails', '1', '--priority', '10'], /--priority is a whole number from 0 to 9/],
    [['jobs', 'mails', '--pushed-after', 'yesterday'], /--pushed-after is a moment such as/],
    [['jobs', 'mails', '--state', 'wating'], /did you mean waiting\?/],
    [['jobs', 'mails', '--after', 'x'], /--after needs --state/],
    [['requeue'], /which jobs\?/],
    [['requeue', 'x', '--queue', 'mails'], /not both/],
    [['update', '--queue', 'mails', '--state', 'waiting'], /nothing to change/],
    [['remove', '--queue', 'mails'], /--state is missing/],
    [['limits', 'mails', '--weight', '2'], /--weight goes with --group/],
    [['limits', 'mails', '--group', 'g', '--capacity', '2'], /a group has --running, --rate and --weight/],
  ] as const) {
    const { code, err } = await ran(args, { MILLPOND_STORE: url })
    assert.deepEqual([code, message.test(err), /hidden/.test(err)], [2, true, false], `${args.join(' ')}: ${err}`)
  }
})

test('a run that is stopped ends with 130, and goes on from there', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  const queue = pond.queue<number>('mails')
  await queue.pushMany(
    Array.from({ length: 5000 }, (_, at) => at),
    { delay: '1d' },
  )
  const stop = new AbortController()
  const onErr = () => stop.abort('SIGINT')
  const stopped = await fed(['promote', '--queue', 'mails', '--yes'], url, { isTTY: true, stop, onErr })
  assert.equal(stopped.code, 130)
  assert.match(stopped.err, /^\r.*\[#*\.*\] \d+ % .* jobs looked at/)
  const { scheduled } = (await queue.stats()).counts
  assert.ok(scheduled > 0 && scheduled < 5000, `${scheduled} are left`)
  const [, place = ''] = /the same call with --after (\S+)/.exec(stopped.out) ?? []
  const rest = await fed(['promote', '--queue', 'mails', '--yes', '--after', place], url)
  assert.deepEqual([rest.code, (await queue.stats()).counts.scheduled], [0, 0])
  const early = new AbortController()
  early.abort('SIGTERM')
  assert.equal((await fed(['promote', '--queue', 'mails', '--yes'], url, { stop: early })).code, 143)
})

test('the demo loses nothing, in a pipe', async () => {
  const { code, out } = await ran(['demo', '--jobs', '30', '--work', '5ms', '--json'])
  const report = JSON.parse(out)
  assert.deepEqual([code, report.accepted, report.sent, report.twice, report.lost], [0, 30, 30, 0, 0])
})
