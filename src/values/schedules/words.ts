/** What a schedule's line says, in English. */
import type { Timing } from './records.ts'

/** cronstrue is loaded here, when words are asked for: most processes never do. The line itself, where it has no words. */
export async function wordsOf({ when, tz }: Pick<Timing, 'when' | 'tz'>): Promise<string> {
  if (when.startsWith('every ')) return `Every ${when.slice('every '.length).trim()}`
  const { default: cronstrue } = await import('cronstrue')
  try {
    return `${cronstrue.toString(when, { use24HourTimeFormat: true })} (${tz})`
  } catch {
    return `${when} (${tz})`
  }
}
