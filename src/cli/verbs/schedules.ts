/** `millpond schedules` */
import { previewOf } from '../../pond/schedule-preview.ts'
import type { ScheduleInfo, Schedules } from '../../pond/schedules.ts'
import { didYouMean } from '../../values/options/did-you-mean.ts'
import { defined } from '../../values/options/options.ts'
import { jsonText } from '../../web/answer.ts'
import { acted } from '../acted.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { ago } from '../figures.ts'
import { withStore } from '../open.ts'
import { plain, table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { type Call, defineVerb, EXIT } from '../verb.ts'

const OPTIONS = {
  tz: { value: 'ZONE', help: 'with preview: the time zone of a cron line, such as Europe/Paris; UTC unless given' },
  count: { value: 'COUNT', help: 'with preview: how many times, 1 to 100; 5 unless given' },
  ...STORE,
  ...JSON_LINES,
} as const
type Name = keyof typeof OPTIONS

export const verb = defineVerb<Name>({
  name: 'schedules',
  summary: 'lists schedules; pauses, resumes, removes, runs them; shows what a line means',
  operands: ['[ACTION]', '[NAME…]'],
  options: OPTIONS,
  notes: `Actions:
  list [NAME…]       all of them, or those; so it is without an action
  pause NAME…        they do not fire, in any process, until resume; those times are not missed
  resume NAME…       they fire again
  remove NAME…       their jobs stay; code that declares one makes it again when it starts
  run NAME…          pushes their jobs now, beside their times, even if they are paused
  preview LINE       the line in words, and its next times; needs no store: preview '0 9 LW * *'

If a schedule of those named is not known, nothing is changed.`,
  async run(call) {
    const { args } = call
    const given = args.operand(0) ?? 'list'
    const names = args.operandsFrom(1)
    if (given === 'preview') return preview(call, names)
    if (args.text('tz') !== undefined || args.text('count') !== undefined) {
      throw new UsageError('--tz and --count go with preview')
    }
    if (given === 'list') return list(call, names)
    const act = Object.hasOwn(ACTIONS, given) ? ACTIONS[given] : undefined
    if (act === undefined) {
      const known = ['list', ...Object.keys(ACTIONS), 'preview']
      // It may be the name of a schedule, or anything else that was put in the wrong place.
      throw new UsageError(`the action is one of ${known.join(', ')}${didYouMean(given, known)}`)
    }
    if (names.length === 0) throw new UsageError(`${given} needs the NAME of a schedule`)
    return change(call, names, given, act)
  },
})

/** @returns what is told of it; undefined: the schedule is gone by now */
type Action = (schedules: Schedules, name: string) => Promise<{ facts: object; text: string } | undefined>

const ACTIONS: Readonly<Record<string, Action>> = {
  pause: async (schedules, name) =>
    (await schedules.pause(name)) ? { facts: { paused: true }, text: 'is paused.' } : undefined,
  resume: async (schedules, name) =>
    (await schedules.resume(name)) ? { facts: { paused: false }, text: 'fires again.' } : undefined,
  remove: async (schedules, name) =>
    (await schedules.remove(name)) ? { facts: { removed: true }, text: 'is removed.' } : undefined,
  run: async (schedules, name) => {
    const pushed = await schedules.run(name)
    if (pushed === undefined) return undefined
    return { facts: pushed, text: pushed.existing ? `has a live job: ${pushed.id}` : `has a new job: ${pushed.id}` }
  },
}

async function change(
  { args, terminal }: Call<Name>,
  names: readonly string[],
  verb: string,
  act: Action,
): Promise<number> {
  return withStore(args, async (opened) => {
    const { schedules } = opened.pond
    const known = await schedules.list()
    if (isMissing(terminal, known, names)) return EXIT.refused
    let code: number = EXIT.done
    for (const name of new Set(names)) {
      const done = await act(schedules, name)
      if (done === undefined) {
        terminal.err(`millpond: the schedule ${plain(name)} was removed meanwhile\n`)
        code = EXIT.failed
      } else {
        const queue = known.find((one) => one.name === name)?.queue ?? ''
        await acted(opened, terminal, { action: `${verb}Schedule`, queue, schedule: name })
        terminal.out(args.flag('json') ? `${jsonText({ name, ...done.facts })}\n` : `${plain(name)} ${done.text}\n`)
      }
    }
    return code
  })
}

async function list({ args, terminal }: Call<Name>, names: readonly string[]): Promise<number> {
  return withStore(args, async ({ pond }) => {
    const all = await pond.schedules.list()
    if (isMissing(terminal, all, names)) return EXIT.refused
    const shown = names.length === 0 ? all : all.filter(({ name }) => names.includes(name))
    if (args.flag('json')) for (const one of shown) terminal.out(`${jsonText(one)}\n`)
    else terminal.out(shown.length === 0 ? 'No schedules.\n' : schedulesTable(terminal, shown))
    return EXIT.done
  })
}

/** Tells of names that the store does not know. */
function isMissing(terminal: Terminal, known: readonly ScheduleInfo[], names: readonly string[]): boolean {
  const all = known.map(({ name }) => name)
  const missing = names.filter((name) => !all.includes(name))
  for (const name of missing) {
    const hint = didYouMean(name, all) || '; millpond schedules lists those that it has'
    terminal.err(`millpond: the store has no schedule ${JSON.stringify(plain(name))}${hint}\n`)
  }
  return missing.length > 0
}

function schedulesTable(terminal: Terminal, shown: readonly ScheduleInfo[]): string {
  const rows = shown.map(({ name, when, tz, queue, nextAt, lastAt, paused, declared }) => [
    name,
    when,
    tz,
    queue,
    ago(nextAt),
    ago(lastAt),
    [...(paused ? ['paused'] : []), ...(declared ? [] : ['no code declares it'])].join(', '),
  ])
  return table(terminal, ['schedule', 'when', 'zone', 'queue', 'next', 'last', ''], rows, { text: [1, 2, 3, 6] })
}

async function preview({ args, terminal }: Call<Name>, lines: readonly string[]): Promise<number> {
  const [line] = lines
  if (line === undefined || lines.length > 1) {
    throw new UsageError("preview needs one LINE, in quotes, such as preview '0 9 * * MON'")
  }
  const options = defined({ tz: args.text('tz'), count: args.whole('count', 1, 100) })
  const { words, times } = await previewOf(line, options)
  if (args.flag('json')) terminal.out(`${jsonText({ words, times })}\n`)
  else terminal.out(`${plain(words)}\n${table(terminal, null, timeRows(times, options.tz), { text: [1] })}`)
  return EXIT.done
}

/** Each time in UTC, and as the clocks of the zone show it. */
function timeRows(times: readonly Date[], tz: string | undefined): string[][] {
  if (tz === undefined) return times.map((at) => [at.toISOString()])
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone: tz, dateStyle: 'full', timeStyle: 'long' })
  return times.map((at) => [at.toISOString(), clock.format(at)])
}
