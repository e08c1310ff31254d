/** `npm start`: plays experiment E2, a newsletter service whose mails take 5 s each, and prints what became of them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { killAll } from './children.ts'
import { Progress } from './progress.ts'
import { play, type Row } from './run.ts'
import { MAIL_TAKES, type Plan, planFrom, RATE, WORKERS } from './settings.ts'
import { count, table } from './table.ts'
import { VARIANTS } from './variants.ts'

const plan = planFrom(process.argv.slice(2))
const temp = mkdtempSync(join(tmpdir(), 'millpond-newsletter-'))
const progress = new Progress()
process.on('exit', () => {
  killAll()
  progress.restore()
  rmSync(temp, { recursive: true, force: true, maxRetries: 5 })
})
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))
process.on('SIGHUP', () => process.exit(129))
setTimeout(() => stop(`the experiment is not over after ${plan.watchdog / 60_000} min`), plan.watchdog).unref()

const startedAt = performance.now()
const rows: Row[] = []
console.log(styleText('bold', 'A newsletter: POST /register saves an address and sends a mail, which takes 5 s'))
console.log(`${RATE} requests/s for ${plan.duration / 1000} s against each of three ways to do it\n`)
for (const [index, variant] of VARIANTS.entries()) {
  console.log(`${styleText('bold', `${index + 1}/${VARIANTS.length}  ${variant.title}`)}: ${variant.story}`)
  try {
    rows.push(await play(variant, plan, temp, progress))
  } catch (error) {
    stop(error instanceof Error ? error.message : String(error))
  }
  console.log()
}
const seconds = (performance.now() - startedAt) / 1000

console.log(`${table(rows)}\n`)
for (const remark of rows.flatMap(remarks)) console.log(remark)
console.log(styleText('dim', arithmetic(plan)))
if (plan.json !== undefined) writeJson(plan.json)

const broken = rows.flatMap(complaints)
if (broken.length > 0) stop(broken.join('\n'))
console.log(styleText('green', `\n✓ ${verdict()}`) + styleText('dim', ` (${seconds.toFixed(0)} s)`))
process.exit(0)

function stop(message: string): never {
  progress.restore()
  console.error(styleText('red', `\n✗ ${message}`, { stream: process.stderr }))
  process.exit(1)
}

/** What breaks a promise, and so fails the experiment. */
function complaints({ variant, accepted, lost, missing }: Row): string[] {
  if (accepted === 0) return [`${variant.title}: not one request was accepted`]
  if (!variant.promises || lost === 0) return []
  const some = missing.slice(0, 5).join(', ') + (lost > 5 ? ', …' : '')
  return [`${variant.title}: ${count(lost)} of ${count(accepted)} accepted mails are missing: ${some}`]
}

/** What a reader of the table should know. */
function remarks({ variant, failures, lost, extra, behind }: Row): string[] {
  const list = Object.entries(failures).map(([why, times]) => `${count(times)} × ${why}`)
  return [
    ...(list.length > 0 ? [`not accepted: ${list.join(', ')}`] : []),
    ...(lost > 0 ? [`${count(lost)} readers were told yes and never got their mail`] : []),
    ...(extra > 0 ? [`mails sent again: ${count(extra)}; at least once is the promise`] : []),
    ...(behind > 250 ? [`the load was up to ${Math.round(behind)} ms late; is this machine busy?`] : []),
  ].map((remark) => `${variant.title}: ${remark}`)
}

function arithmetic({ requests }: Plan): string {
  const alone = (requests * MAIL_TAKES) / 1000
  const hours = Math.floor(alone / 3600)
  const minutes = Math.round((alone % 3600) / 60)
  const long = hours === 0 ? `${minutes} min` : `${hours} h ${minutes} min`
  return `${count(requests)} mails × ${MAIL_TAKES / 1000} s ÷ ${count(WORKERS)} workers = ${alone / WORKERS} s; a single worker would take ${long}`
}

function verdict(): string {
  const row = rows.find(({ variant }) => variant.key === 'millpond')
  if (row === undefined) return ''
  return `The worker was killed, and all ${count(row.accepted)} accepted mails were sent.`
}

function writeJson(file: string): void {
  const figures = rows.map(({ variant, ...row }) => ({ variant: variant.key, title: variant.title, ...row }))
  const { full, duration, killAt } = plan
  const report = {
    experiment: 'E2',
    full,
    rate: RATE,
    duration,
    killAt,
    mailTakes: MAIL_TAKES,
    node: process.version,
    seconds,
  }
  writeFileSync(file, `${JSON.stringify({ ...report, rows: figures }, null, 2)}\n`)
}
