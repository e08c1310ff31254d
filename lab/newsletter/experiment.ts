/** Experiment E2: a newsletter service whose mails take 5 s each, under a load that does not wait for answers. */
import { styleText } from 'node:util'
import { atMost } from '../bars.ts'
import { freshFolder } from '../data.ts'
import type { Experiment, Row } from '../experiment.ts'
import { on } from '../flags.ts'
import { fail } from '../progress.ts'
import { Progress } from './progress.ts'
import { type Played, play } from './run.ts'
import { DURATION, MAIL_TAKES, RATE, WORKERS } from './settings.ts'
import { VARIANTS } from './variants.ts'

const flags = { full: on('the published load: 30 s and 3,000 requests for each variant, instead of 10 s and 1,000') }

export const newsletter: Experiment<typeof flags> = {
  id: 'E2',
  flags,
  about: ({ full }) => `A newsletter: POST /register saves an address and sends a mail, which takes 5 s
${RATE} requests/s for ${durationOf(full) / 1000} s against each of three ways to do it`,
  async *measure({ full }) {
    const progress = new Progress()
    process.once('exit', () => progress.restore())
    const played: Played[] = []
    for (const [at, variant] of VARIANTS.entries()) {
      console.log(`\n${styleText('bold', `${at + 1}/${VARIANTS.length}  ${variant.title}`)}: ${variant.story}`)
      played.push(await play(variant, durationOf(full), freshFolder(), progress))
    }
    for (const { variant, accepted, lost, missing } of played) {
      if (accepted === 0) fail(variant.title, 'not one request was accepted')
      if (variant.promises && lost > 0)
        fail(variant.title, `accepted mails are missing: ${missing.slice(0, 5).join(', ')}`)
    }
    yield { head: HEAD, rows: played.map(rowOf), notes: [...played.flatMap(remarks), arithmetic(durationOf(full))] }
  },
}

const durationOf = (full: boolean): number => (full ? DURATION.full : DURATION.usual)
const HEAD = ['', 'success', 'p50', 'p95', 'p99', 'accepted', 'mails', 'twice', 'lost']

function rowOf({ variant, ...figures }: Played): Row {
  const { requests, accepted, mails, extra, lost } = figures
  const cells = [
    variant.title,
    // Never up to 100: a single failure must show.
    `${Math.floor((accepted / requests) * 1000) / 10} %`,
    ...[figures.p50, figures.p95, figures.p99].map(time),
    ...[accepted, mails, extra, lost].map(count),
  ]
  return {
    cells,
    bars: variant.promises ? [atMost(lost, 0, ' lost')] : [],
    figures: { variant: variant.key, ...figures },
  }
}

function time(ms: number | null): string {
  if (ms === null) return '–'
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

const count = (value: number): string => value.toLocaleString('en')

/** What a reader of the table should know. */
function remarks({ variant, failures, lost, extra, behind }: Played): string[] {
  const list = Object.entries(failures).map(([why, times]) => `${count(times)} × ${why}`)
  return [
    ...(list.length > 0 ? [`not accepted: ${list.join(', ')}`] : []),
    ...(lost > 0 ? [`${count(lost)} readers were told yes and never got their mail`] : []),
    ...(extra > 0 ? [`mails sent again: ${count(extra)}; at least once is the promise`] : []),
    ...(behind > 250 ? [`the load was up to ${Math.round(behind)} ms late; is this machine busy?`] : []),
  ].map((remark) => `${variant.title}: ${remark}`)
}

function arithmetic(duration: number): string {
  const requests = (duration / 1000) * RATE
  const alone = (requests * MAIL_TAKES) / 1000
  return `${count(requests)} mails × ${MAIL_TAKES / 1000} s ÷ ${count(WORKERS)} workers = ${alone / WORKERS} s; a single worker would take ${Math.round(alone / 60)} min`
}
