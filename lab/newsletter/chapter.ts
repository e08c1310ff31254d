/** E2 of the report: slow work behind a bounded queue. */
import type { ChapterPlan } from '../chapter.ts'
import { type Finding, numberIn, type Part, partOf, type Row, rowOf } from '../report/model.ts'
import { shown } from '../report/units.ts'
import { limited } from './rate/part.ts'
import { CLIENT_TIMEOUT, MAIL_TAKES, RATE } from './settings.ts'
import { drowned, KILLED_SECONDS, killed, languages, SECONDS, spilled } from './surge/parts.ts'

export const newsletter: ChapterPlan = {
  id: 'E2',
  title: 'Slow work behind a bounded queue',
  short: 'Mails',
  question:
    'Each request sends a mail, which takes five seconds. Who waits, who is turned away, and whose mail is lost when a process dies?',
  takes: { smoke: 60, usual: 275, full: 1700 },
  published: [
    {
      title: 'Published: 100 requests/s for 30 s',
      head: ['variant', 'success', 'latency'],
      rows: [
        ['Go, send before answering', '100 %', 'p50 5.0 s'],
        ['Python, 1 thread', '0.2 %', '–'],
        ['Python, 100 threads', '23 %', 'p50 25.9 s'],
        ['Python, 1,000 threads', '100 %', 'p50 5.0 s'],
        ['memory queue of 0, 1 worker', '0.23 %', '30 s'],
        ['of 1,000, 1 worker', '33.6 %', 'mean 19.9 s'],
        ['of 3,000, 1 worker', '100 %', 'mean 0.97 ms, p99 5.0 ms'],
        ['of 3,000, 1,000 workers', '100 %', 'mails follow at once'],
      ],
      note: 'Left unsolved there: a process that dies takes every unsent mail with it, a shutdown loses the queue, and a mail server with a rate limit makes more workers useless.',
    },
  ],
  setUp: ({ pick }) => [
    `POST /register saves an address on the disk and sends a mail, which takes ${MAIL_TAKES / 1000} s and is written to a maildir.`,
    `An open loop of ${RATE} requests/s for ${pick(SECONDS)} s, whether earlier ones are answered or not; clients give up after ${CLIENT_TIMEOUT / 1000} s. Where processes are killed, the load takes ${pick(KILLED_SECONDS)} s.`,
    'The programs in Go and Python use the standard libraries of their languages. Through millpond serve they need only an HTTP client.',
    'After each run, every accepted address is held against the mails in the maildir.',
  ],
  async *measure(run) {
    const ready = await languages(run)
    yield await drowned(run, ready)
    yield await killed(run, ready)
    yield await spilled(run, ready)
    yield await limited(run)
  },
  findings,
}

function findings(parts: readonly Part[]): Finding[] {
  const found: Finding[] = []
  const part = partOf(parts, 'drowned')
  const small = rowOf(part, 'go-1000-1')
  const success = numberIn(small, 'success')
  if (success !== undefined) {
    found.push({
      verdict: 'falls',
      figure: `${shown(success, 'share')} answered`,
      text: 'by a memory queue of 1,000 with one worker; everyone else waited 30 s for nothing.',
      part: 'drowned',
    })
  }
  const dead = partOf(parts, 'killed')
  const lost = (rows: readonly Row[]) => rows.map((row) => numberIn(row, 'lost') ?? 0)
  const [plain, ours] = (['plain', 'ours'] as const).map(
    (kind) => dead?.rows.filter((row) => row.kind === kind && row.variant !== 'spill-kill') ?? [],
  )
  if (plain !== undefined && plain.length > 0) {
    const most = Math.max(...lost(plain))
    found.push({
      verdict: 'falls',
      figure: `${shown(most, 'count')} mails lost`,
      text: 'although their readers were told yes, when a server with a queue in its memory was killed.',
      part: 'killed',
    })
  }
  if (ours !== undefined && ours.length > 0) {
    const sum = lost(ours).reduce((all, each) => all + each, 0)
    const accepted = ours.reduce((all, row) => all + (numberIn(row, 'accepted') ?? 0), 0)
    found.push({
      verdict: sum === 0 ? 'holds' : 'missed',
      figure: `${shown(sum, 'count')} of ${accepted.toLocaleString('en')} lost`,
      text: `by Millpond in Node, Go and Python, with server and worker killed by SIGKILL in the middle.`,
      part: 'killed',
    })
  }
  const handed = partOf(parts, 'spilled')?.rows ?? []
  const array = handed.find(({ kind }) => kind === 'plain')
  if (array !== undefined) {
    found.push({
      verdict: 'falls',
      figure: `${shown(numberIn(array, 'lost'), 'count')} mails lost`,
      text: 'at an ordinary SIGTERM, by a bounded queue in memory.',
      part: 'spilled',
    })
  }
  const spills = handed.filter(({ kind }) => kind === 'ours')
  if (spills.length > 0) {
    const sum = lost(spills).reduce((all, each) => all + each, 0)
    found.push({
      verdict: sum === 0 ? 'holds' : 'missed',
      figure: `${shown(sum, 'count')} lost`,
      text: 'at SIGTERM by Millpond’s queue in memory that spills to SQLite, whatever its size.',
      part: 'spilled',
    })
  }
  const rates = partOf(parts, 'limited')
  const [tries, first] = [rowOf(rates, 'array'), rates?.rows.find(({ kind }) => kind === 'ours')]
  const refused = numberIn(tries, 'refused')
  if (refused !== undefined && refused > 0) {
    found.push({
      verdict: 'falls',
      figure: `${shown(refused, 'count')} refusals`,
      text: 'from a mail server with a limit of 200/s, by workers that only try again.',
      part: 'limited',
    })
  }
  const kept = rates?.rows.filter(({ kind }) => kind === 'ours') ?? []
  if (first !== undefined) {
    const all = kept.map((row) => numberIn(row, 'rate') ?? 0)
    const worst = all.reduce((so, rate) => (Math.abs(rate - 200) > Math.abs(so - 200) ? rate : so), 200)
    const isKept = Math.abs(worst - 200) <= 2 && kept.every((row) => numberIn(row, 'refused') === 0)
    found.push({
      verdict: isKept ? 'holds' : 'missed',
      figure: shown(worst, 'per second'),
      text: `mails on the store that is furthest from the limit of 200/s; ${shown(Math.max(...kept.map((row) => numberIn(row, 'refused') ?? 0)), 'count')} were refused.`,
      part: 'limited',
    })
  }
  return found
}
