/** `millpond doctor` */

import { examineStore } from '../../stores/doctor.ts'
import type { Finding } from '../../stores/examination.ts'
import { assertExists } from '../../stores/existing.ts'
import { errorSummary } from '../../values/errors/safe-error.ts'
import { jsonText } from '../../web/answer.ts'
import { type Arguments, JSON_LINES, STORE } from '../arguments.ts'
import { examineQueues } from '../doctor/queues.ts'
import { counted } from '../figures.ts'
import { withStore } from '../open.ts'
import { plain } from '../table.ts'
import { styled, type Terminal } from '../terminal.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'doctor',
  summary: 'looks at the store, its settings and its queues, and says what to do',
  options: {
    all: { help: 'shows what is well, too' },
    ...STORE,
    ...JSON_LINES,
  },
  notes:
    'It changes nothing. Exit code 0: nothing but notes; 3: a warning or a problem, such as a\n' +
    'check that could not be made; 1: the store cannot be reached.',
  async run({ args, terminal }) {
    const found = await diagnosis(args)
    if (args.flag('json')) for (const one of found) terminal.out(`${jsonText(one)}\n`)
    else show(terminal, found, args.flag('all'))
    return found.some(({ level }) => level === 'warning' || level === 'problem') ? EXIT.refused : EXIT.done
  },
})

/** All checks of the store, then of its queues. */
export async function diagnosis(args: Arguments<'store'>): Promise<Finding[]> {
  const url = args.store()
  await assertExists(url)
  const found = await examineStore(url)
  // A schema of another version would be migrated by opening it.
  const versions = found.filter(({ check }) => check === 'version')
  if (versions.length === 0 || versions.some(({ level }) => level !== 'ok')) return found
  try {
    return [...found, ...(await withStore(args, examineQueues))]
  } catch (error) {
    const text = `the store cannot be opened: ${errorSummary(error)}`
    return [...found, { check: 'open', level: 'problem', text, action: 'do what the message says' }]
  }
}

const STYLES = { ok: 'green', note: 'cyan', warning: 'yellow', problem: 'red' } as const
/** Worst first. */
const ORDER: readonly Finding['level'][] = ['problem', 'warning', 'note', 'ok']

function show(terminal: Terminal, found: readonly Finding[], all: boolean): void {
  const shown = found
    .filter(({ level }) => all || level !== 'ok')
    .toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level))
  for (const { level, check, text, action } of shown) {
    terminal.out(`${styled(terminal, 'out', STYLES[level], level.padEnd(7))}  ${check}: ${plain(text)}\n`)
    if (action !== undefined) terminal.out(`         → ${plain(action)}\n`)
  }
  const count = (level: Finding['level']) => found.filter((one) => one.level === level).length
  terminal.out(
    `${counted(count('problem'), 'problem')}, ${counted(count('warning'), 'warning')}, ${counted(count('note'), 'note')}; ` +
      `${counted(count('ok'), 'check is', 'checks are')} well.\n`,
  )
}
