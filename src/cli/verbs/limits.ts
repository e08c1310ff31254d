/** `millpond limits` */
import { changeText } from '../../pond/action-detail.ts'
import type { GroupLimitOptions } from '../../pond/limits.ts'
import type { Queue } from '../../pond/queue.ts'
import { overrideSettings, SETTING_NAMES, settingsAfter, shownSettings } from '../../pond/queue-options.ts'
import { defined } from '../../values/options/options.ts'
import type { GroupRecord } from '../../values/settings/limits.ts'
import { jsonText } from '../../web/answer.ts'
import { acted } from '../acted.ts'
import { type Arguments, JSON_LINES, STORE } from '../arguments.ts'
import { NEEDS_YES } from '../bulk.ts'
import { grouped, NONE, time } from '../figures.ts'
import { knownQueue, type Opened, withStore } from '../open.ts'
import {
  optionName,
  overridesOf,
  rateIn,
  rateText,
  runningOf,
  SETTINGS,
  settingNames,
  settingText,
} from '../settings-text.ts'
import { plain, table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { type Call, defineVerb, EXIT } from '../verb.ts'

const OPTIONS = {
  ...SETTINGS,
  clear: { value: 'NAME', multiple: true, help: 'gives a setting back to code, such as running; or all' },
  group: {
    value: 'NAME',
    help:
      'shows or sets the own limits of a group: running, rate, weight;\n' +
      "'' for the jobs without a group. Once set, groups take turns for good",
  },
  weight: { value: 'NUMBER', help: 'with --group: its share, 1 unless given' },
  'dry-run': { help: 'only checks what is given, and shows what holds now and what would change' },
  yes: { help: 'also shortens how long finished jobs stay, which removes jobs' },
  ...STORE,
  ...JSON_LINES,
} as const
type Name = keyof typeof OPTIONS

/** Groups that are listed. */
const MAX_GROUPS = 50

export const verb = defineVerb<Name>({
  name: 'limits',
  summary: 'shows and sets limits, rates and other settings of a queue, and limits of its groups',
  operands: ['QUEUE'],
  options: OPTIONS,
  notes:
    'Without options it shows what holds, and who has set it. What is set holds at once, over all workers.\n' +
    "What is set here is an operator's: no deploy and no restart changes it, until --clear. Programs that want another\n" +
    'value are told. Of own limits of a group, the last call wins, from here or from code. docs/limits.md says what limits do.',
  run: (call) => {
    const { args, terminal } = call
    const group = args.text('group')
    return withStore(args, async (opened) => {
      const queue = await knownQueue(opened, args.operand(0))
      const isDry = args.flag('dry-run')
      const removal = group === undefined ? await removalBy(call, opened, queue) : undefined
      if (removal !== undefined && !isDry && !args.flag('yes')) {
        terminal.err(`millpond: ${removal}\n${NEEDS_YES}`)
        return EXIT.refused
      }
      const change = group === undefined ? await changeQueue(call, opened, queue, isDry) : undefined
      if (group !== undefined) await changeGroup(call, opened, queue, group, isDry)
      const groups = await groupsOf(opened, queue, group)
      if (args.flag('json')) {
        const settings = await queue.settings()
        terminal.out(`${jsonText({ queue: queue.name, settings, groups, ...(isDry && defined({ change })) })}\n`)
        return EXIT.done
      }
      if (group === undefined) await showSettings(terminal, queue)
      if (group !== undefined && groups.length === 0) terminal.out(await noGroupText(queue, group))
      else showGroups(terminal, groups)
      if (isDry && change !== undefined) terminal.out(`It would change ${change}.\n`)
      if (isDry && removal !== undefined) terminal.out(`${removal}\n`)
      if (isDry) terminal.out('Nothing was changed.\n')
      return EXIT.done
    })
  },
})

/** @returns of a dry run, what it would change, such as `running 1 → 20`; undefined: nothing */
async function changeQueue(
  call: Call<Name>,
  opened: Opened,
  queue: Queue,
  isDry: boolean,
): Promise<string | undefined> {
  const { args, terminal } = call
  if (args.text('weight') !== undefined) throw new UsageError('--weight goes with --group')
  if (isDry) return changeText(...(await settingsBy(call, opened, queue)))
  const overrides = overridesOf(args)
  const given = args.texts('clear')
  const told = { queue: queue.name }
  const changed = async (change: () => Promise<unknown>) => {
    const before = await queue.settings()
    await change()
    return defined({ detail: changeText(before, await queue.settings()) })
  }
  if (given.length > 0) {
    const detail = await changed(() => queue.clearOverrides(settingNames(given)))
    await acted(opened, terminal, { ...told, action: 'clear', settings: given, ...detail })
  }
  const settings = Object.keys(overrides)
  if (settings.length === 0) return undefined
  const detail = await changed(() => queue.override(overrides))
  await acted(opened, terminal, { ...told, action: 'override', settings, ...detail })
  return undefined
}

/** What holds, and what would. */
async function settingsBy({ args }: Call<Name>, { store }: Opened, { name: queue }: Queue) {
  const given = args.texts('clear')
  const clear = given.length > 0 ? (settingNames(given) ?? SETTING_NAMES) : []
  const report = store.capabilities.settings ? await store.operations.settings({ queue }) : null
  const change = { ...overrideSettings(store, queue, overridesOf(args)), by: 'operator', clear } as const
  return [shownSettings(store, report), settingsAfter(store, report, change)] as const
}

/** @returns which jobs the change removes: those that are kept, and have ended longer ago than the new time */
async function removalBy(call: Call<Name>, opened: Opened, queue: Queue): Promise<string | undefined> {
  const [before, after] = await settingsBy(call, opened, queue)
  const shorter = (['keepDone', 'keepDead'] as const).flatMap((name) => {
    const [was, is] = [before, after].map((settings) => settings.find((one) => one.name === name)?.value)
    return Number(is) < Number(was) ? [{ name, was, is }] : []
  })
  if (shorter.length === 0) return undefined
  const { counts } = await queue.stats()
  const texts = shorter.map(({ name, was, is }) => {
    const change = `${optionName(name)} ${settingText(name, was)} → ${settingText(name, is)}`
    const count = name === 'keepDone' ? counts.done : counts.dead + counts.cancelled
    const jobs = `${grouped(count)} ${name === 'keepDone' ? 'done' : 'dead and cancelled'} jobs`
    return `${change} removes ${is === 0 ? `the ${jobs}` : `what ended longer ago of the ${jobs}`}`
  })
  return `${texts.join('; ')}.`
}

async function changeGroup(
  { args, terminal }: Call<Name>,
  opened: Opened,
  queue: Queue,
  group: string,
  isDry: boolean,
): Promise<void> {
  const { limits, ...others } = overridesOf(args)
  if (Object.keys(others).length > 0 || limits?.group !== undefined) {
    throw new UsageError('a group has --running, --rate and --weight of its own, and nothing else')
  }
  const isCleared = args.texts('clear').length > 0
  if (isCleared && !args.texts('clear').includes('all')) throw new UsageError('with --group, --clear takes all')
  const set: GroupLimitOptions = defined({ running: runningOf(args), rate: rateIn(args), weight: weightOf(args) })
  if (isDry) return
  const told = () => acted(opened, terminal, { action: 'limitGroup', queue: queue.name, group })
  if (isCleared) await queue.limitGroup(group, null)
  if (Object.keys(set).length === 0) return isCleared ? told() : undefined
  // What is not given stays as it is.
  const [known] = isCleared ? [] : await opened.store.operations.groups({ queue: queue.name, group, limit: 1 })
  await queue.limitGroup(group, { ...(known?.limits ?? {}), ...set })
  await told()
}

function weightOf(args: Arguments<Name>): number | undefined {
  const text = args.text('weight')
  if (text === undefined) return undefined
  const weight = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0
  if (weight > 0 && weight <= 1000) return weight
  throw new UsageError('--weight is a number above 0, at most 1000')
}

function groupsOf({ store }: Opened, queue: Queue, group: string | undefined): Promise<GroupRecord[]> | GroupRecord[] {
  if (!store.capabilities.groups) return []
  return store.operations.groups({ queue: queue.name, limit: MAX_GROUPS, ...defined({ group }) })
}

async function showSettings(terminal: Terminal, queue: Queue): Promise<void> {
  const rows = (await queue.settings()).map(({ name, value, by, code }) => [
    optionName(name),
    settingText(name, value),
    by,
    code === undefined ? '' : `code wants ${settingText(name, code)}`,
  ])
  terminal.out(table(terminal, ['setting', 'value', 'set by', ''], rows, { text: [1, 2, 3] }))
}

/** Without turns no group is told of, whatever waits. */
async function noGroupText(queue: Queue, group: string): Promise<string> {
  const isGrouped = (await queue.groups({ limit: 1 })).length > 0 || (await queue.stats()).limits?.group != null
  if (isGrouped) return `The group ${plain(group) || "''"} has no jobs that wait or run, and no limits of its own.\n`
  return `The groups of ${plain(queue.name)} do not take turns, and are not counted. Limits for groups make them do so.\n`
}

function showGroups(terminal: Terminal, groups: readonly GroupRecord[]): void {
  if (groups.length === 0) return
  const rows = groups.map(({ group, waiting, running, limits, nextStart }) => [
    group === '' ? "''" : group,
    grouped(waiting),
    grouped(running),
    limits === null ? NONE : (limits.running?.toString() ?? 'as the queue'),
    limits === null ? NONE : limits.rate === null ? 'as the queue' : rateText(limits.rate),
    limits === null ? NONE : String(limits.weight),
    nextStart === null ? (waiting > 0 ? 'at its limit' : '') : nextStart > 0 ? `in ${time(nextStart)}` : '',
  ])
  const heads = ['group', 'waiting', 'running', 'own running', 'own rate', 'weight', 'starts']
  terminal.out(`\n${table(terminal, heads, rows)}`)
  if (groups.length === MAX_GROUPS) terminal.out(`The first ${MAX_GROUPS} groups by name; --group shows one.\n`)
}
