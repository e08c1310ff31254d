/** Which jobs a verb is about: the filters of `queue.jobs`, as options. */
import type { JobsOptions } from '../pond/listing.ts'
import type { Queue } from '../pond/queue.ts'
import type { Store } from '../store.ts'
import { dataFilter } from '../values/operations/data-filter.ts'
import { didYouMean } from '../values/options/did-you-mean.ts'
import { defined } from '../values/options/options.ts'
import { type Arguments, orUsageError } from './arguments.ts'

export const FILTERS = {
  group: { value: 'NAME', help: "only jobs of this group; --group='' for those without one" },
  key: { value: 'KEY', help: 'only jobs with this key' },
  error: { value: 'TEXT', help: 'only jobs whose last error has this text in its message' },
  'error-code': { value: 'CODE', help: 'only jobs whose last error has this code, such as HandlerFailed' },
  text: { value: 'TEXT', help: 'only jobs with this text in their data as JSON' },
  data: { value: 'PATH=VALUE', help: 'only jobs with this value at this place in their data as JSON: user.id=7' },
  'pushed-after': { value: 'TIME', help: 'only jobs pushed since: 2026-03-01T04:00Z, or 90m ago' },
  'pushed-before': { value: 'TIME', help: 'only jobs pushed before' },
} as const

export type Filter = Omit<JobsOptions, 'limit' | 'after'>

/** @param hasData `--data` is something else @throws UsageError */
export function filterOf(args: Arguments<keyof typeof FILTERS>, hasData = false): Filter {
  const data = hasData ? undefined : args.text('data')
  if (data !== undefined) orUsageError('--', () => dataFilter(data))
  return defined({
    group: args.text('group'),
    key: args.text('key'),
    errorText: args.text('error'),
    errorCode: args.text('error-code'),
    text: args.text('text'),
    data,
    pushedFrom: args.moment('pushed-after'),
    pushedBefore: args.moment('pushed-before'),
  })
}

/** Groups that are looked through for a name that is near. */
const MAX_GROUPS = 1000

/** Why, perhaps, no job passes; a line for each filter in which a slip is easy. */
export async function noneText(store: Store, queue: Queue, { errorText, errorCode, group }: Filter): Promise<string> {
  const lines: string[] = []
  if (errorText !== undefined) lines.push('--error is matched as it is written: case counts.')
  if (errorCode !== undefined) {
    const what = 'is matched as a whole, and as it is written: a code such as HandlerFailed'
    lines.push(`--error-code ${what}. Text of the message is for --error.`)
  }
  if (group !== undefined && group !== '' && store.capabilities.groups) {
    const names = (await queue.groups({ limit: MAX_GROUPS })).map((one) => one.group)
    const [known] = await store.operations.groups({ queue: queue.name, group, limit: 1 })
    // Where groups do not take turns none is told of, whatever waits.
    const none = `: no job of a group ${JSON.stringify(group)} waits or runs${didYouMean(group, names)}`
    if (known === undefined) lines.push(`--group is matched as a whole${names.length === 0 ? '' : none}`)
  }
  return lines.map((line) => `millpond: ${line}\n`).join('')
}
