/** `millpond push` */

import type { PushOptions } from '../../pond/push/options.ts'
import type { Queue } from '../../pond/queue.ts'
import { checkId } from '../../values/jobs/ids.ts'
import { defined } from '../../values/options/options.ts'
import { checkQueueName } from '../../values/settings/names.ts'
import { MAX_COST } from '../../values/settings/rate.ts'
import { jsonText } from '../../web/answer.ts'
import { type Arguments, JSON_LINES, orUsageError, STORE } from '../arguments.ts'
import { counted } from '../figures.ts'
import { jsonData, jsonLines } from '../json-data.ts'
import { knownQueue, withStore } from '../open.ts'
import { ProgressLine } from '../progress.ts'
import { Speed } from '../speed.ts'
import { UsageError } from '../usage-error.ts'
import { type Call, defineVerb, EXIT, stoppedCode } from '../verb.ts'

const OPTIONS = {
  lines: { help: 'a job for each line of JSON on the standard input' },
  priority: { value: 'N', help: '0 to 9, higher first; 4 unless given' },
  delay: { value: 'TIME', help: 'due after this time' },
  'run-at': { value: 'TIME', help: 'due then, such as 2026-03-01T04:00Z' },
  key: { value: 'KEY', help: 'at most one live job of the queue has it' },
  group: { value: 'NAME', help: 'what it belongs to, such as a tenant' },
  cost: { value: 'N', help: 'what its start takes of a rate; 1 unless given' },
  attempts: { value: 'N', help: "how often it is tried; the queue's setting unless given" },
  timeout: { value: 'TIME', help: "how long an attempt may run; the queue's setting unless given" },
  id: { value: 'UUID', help: 'its id: a repeated push with it stores nothing' },
  after: { value: 'ID', multiple: true, help: 'waits for this job' },
  'on-dead': { value: 'WHAT', help: 'what it does when such a job dies: cancel, unless given, or run' },
  'part-of': { value: 'ID', help: 'what waits for this job waits for the new one, too' },
  new: { help: 'makes the queue if it does not exist' },
  'dry-run': { help: 'only checks' },
  ...STORE,
  ...JSON_LINES,
} as const
type Name = keyof typeof OPTIONS

/** Jobs of a call of the library. */
const STEP = 500

export const verb = defineVerb<Name>({
  name: 'push',
  summary: 'pushes a job, or one for each line of the standard input',
  operands: ['QUEUE', '[DATA]'],
  options: OPTIONS,
  notes: 'DATA is JSON, or - for the standard input; null unless given. Other users can see arguments of a process.',
  async run(call) {
    const { args, terminal } = call
    const isMany = args.flag('lines')
    if (isMany && args.operand(1) !== undefined) throw new UsageError('give DATA or --lines, not both')
    if (isMany && (args.text('id') ?? args.text('key')) !== undefined) {
      throw new UsageError('--id and --key are of one job: leave out --lines')
    }
    const options = optionsOf(args)
    const data = await jsonData(terminal, args.operand(1))
    return withStore(args, async (opened) => {
      const name = args.operand(0)
      const queue = args.flag('new')
        ? opened.pond.queue(orUsageError('', () => checkQueueName(name)))
        : await knownQueue(opened, name)
      if (isMany) return pushLines(call, queue, options)
      if (args.flag('dry-run')) {
        terminal.out(args.flag('json') ? `${jsonText({ count: 1 })}\n` : '1 job. Nothing was pushed.\n')
        return EXIT.done
      }
      const pushed = await queue.push(data ?? null, options)
      if (args.flag('json')) terminal.out(`${jsonText(pushed)}\n`)
      else {
        terminal.out(`${pushed.id}\n`)
        if (pushed.existing) terminal.err('A job with this key or id is there already: nothing was pushed.\n')
      }
      return EXIT.done
    })
  },
})

/** @throws UsageError */
function optionsOf(args: Arguments<Name>): PushOptions {
  const given = {
    priority: args.whole('priority', 0, 9),
    delay: args.duration('delay'),
    runAt: args.date('run-at'),
    key: args.text('key'),
    group: args.text('group'),
    cost: args.whole('cost', 1, MAX_COST),
    attempts: args.whole('attempts', 1, 1_000_000),
    timeout: args.time('timeout', 1),
    id: args.text('id'),
    after: idsOf(args.texts('after')),
    onDead: args.choice('on-dead', ['cancel', 'run']),
    partOf: args.text('part-of'),
  }
  if (given.delay !== undefined && given.runAt !== undefined) throw new UsageError('give --delay or --run-at, not both')
  return defined(given)
}

/** @throws UsageError */
function idsOf(given: readonly string[]): string[] | undefined {
  const ids = given.map((id) => orUsageError('--after: ', () => checkId(id)))
  return ids.length === 0 ? undefined : ids
}

async function pushLines({ args, terminal, stop }: Call<Name>, queue: Queue, options: PushOptions): Promise<number> {
  const line = new ProgressLine(terminal, 'jobs pushed')
  const speed = new Speed()
  let done = 0
  let step: unknown[] = []
  const flush = async () => {
    if (!args.flag('dry-run') && step.length > 0) await queue.pushMany(step, options)
    done += step.length
    step = []
    line.update(speed.of(done, null))
  }
  try {
    for await (const data of jsonLines(terminal)) {
      step.push(data)
      if (step.length >= STEP) await flush()
      if (stop.aborted) break
    }
    await flush()
  } finally {
    line.clear()
    // Also after an error: so many lines need not be sent again.
    const what = args.flag('dry-run') ? 'Nothing was pushed.' : 'Pushed.'
    terminal.out(args.flag('json') ? `${jsonText({ count: done })}\n` : `${counted(done, 'job')}. ${what}\n`)
  }
  return stop.aborted ? stoppedCode(stop) : EXIT.done
}
