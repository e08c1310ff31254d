/** `npm run lab`: all five experiments, plain variants and ours, and a report of them. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, styleText } from 'node:util'
import type { ChapterPlan, Run } from './chapter.ts'
import type { Chapter, Finding, Report, SizeName } from './report/model.ts'
import { installPackages, installPrograms } from './setup.ts'

/** Each loaded only when it is played: its packages may have to be installed first. */
const CHAPTERS: Record<string, () => Promise<ChapterPlan>> = {
  E1: async () => (await import('./users/chapter.ts')).users,
  E2: async () => (await import('./newsletter/chapter.ts')).newsletter,
  E3: async () => (await import('./cache/chapter.ts')).cache,
  E4: async () => (await import('./coalesce/chapter.ts')).coalesce,
  E5: async () => (await import('./priorities/chapter.ts')).priorities,
  rivals: async () => (await import('./bench/chapter.ts')).rivals,
}
/** Packages that take part in the experiments. */
const PACKAGES = ['hono', '@hono/node-server', 'express', 'fastify', 'ioredis', 'pg', 'msgpackr', 'amqplib', 'uplot']
const RUNS: Record<SizeName, number> = { smoke: 1, usual: 1, full: 3 }

const USAGE = `npm run lab -- [options]
  --full             at the published sizes, three runs of each variant: about two hours
  --smoke            tiny, to see that it works; its figures mean nothing
  --only LIST        some of ${Object.keys(CHAPTERS).join(', ')}; rivals, five minutes more, only where it is named
  --variants REGEXP  only variants whose names match
  --runs N           runs of each variant; medians count (1; with --full 3)
  --out DIR          where the report goes: index.html, report.md, report.json (lab/results)
  --draw FILE        draws the report of a former run's report.json again`

const { only, size, runs, variants, out, draw } = optionsFrom(process.argv.slice(2))
installPackages()
if (draw === undefined) await installPrograms()
const { write } = await import('./report/write.ts')
if (draw !== undefined) {
  show(JSON.parse(readFileSync(draw, 'utf8')))
  process.exit()
}

const { exitOnSignals, Servers } = await import('./experiment.ts')
const { facts, ownVersion, versionsOfPackages } = await import('./machine.ts')
const { generator } = await import('./load/load.ts')
const { Live } = await import('./live.ts')

exitOnSignals()
const plans = await Promise.all(only.map((id) => CHAPTERS[id]?.()))
const played = plans.filter((plan) => plan !== undefined)
const live = new Live(played.reduce((sum, { takes }) => sum + takes[size], 0))
const servers = new Servers()
const report: Report = {
  format: 1,
  at: new Date().toISOString(),
  seconds: 0,
  size,
  command: ['npm run lab', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])].join(' '),
  machine: { ...facts(), generator },
  versions: { Millpond: ownVersion(), Node: process.version.slice(1), ...versionsOfPackages(PACKAGES) },
  chapters: [],
}
const began = performance.now()
for (const plan of played) {
  live.begin(plan.id, plan.title, plan.takes[size])
  report.chapters.push(await play(plan))
  live.end()
  // What was measured stays, whatever ends the run.
  report.seconds = (performance.now() - began) / 1000
  save(report)
}
live.close()
await servers.stop()
for (const about of await servers.abouts()) {
  const [, name = about, version = ''] = /^(\w+) ([\d.]+)/.exec(about) ?? []
  if (version !== '') report.versions[name] = version
}
report.seconds = (performance.now() - began) / 1000
show(report)
process.exit(report.chapters.some(({ failures }) => failures.length > 0) ? 1 : 0)

async function play(plan: ChapterPlan): Promise<Chapter> {
  const start = performance.now()
  const failures: string[] = []
  const run: Run = {
    size,
    stage: servers,
    runs,
    pick: (sizes) => sizes[size],
    wants: (variant) => variants.test(variant),
    tell: (what) => live.tell(what),
    fail(about, error) {
      const failure = `${about}: ${error instanceof Error ? error.message : String(error)}`
      failures.push(failure)
      live.say(`  ${styleText('red', '✗')} ${failure}`)
    },
    uses: (name, version) => {
      report.versions[name] = version
    },
  }
  const chapter: Chapter = {
    id: plan.id,
    title: plan.title,
    short: plan.short,
    question: plan.question,
    setUp: plan.setUp(run),
    published: plan.published,
    parts: [],
    findings: [],
    commands: [`npm ci && npm run lab -- --only ${plan.id}${size === 'full' ? ' --full' : ''}`],
    seconds: 0,
    failures,
  }
  try {
    for await (const part of plan.measure(run)) {
      chapter.parts.push(part)
      live.say(`  ${styleText('green', '✓')} ${part.title}`)
    }
  } catch (error) {
    // What the other chapters find is still worth having.
    run.fail(plan.title, error)
  }
  chapter.findings = plan.findings(chapter.parts)
  for (const finding of chapter.findings) live.say(`    ${lineOf(finding)}`)
  chapter.seconds = (performance.now() - start) / 1000
  return chapter
}

function save(made: Report): void {
  mkdirSync(out, { recursive: true })
  write(made, out)
}

function show(made: Report): void {
  save(made)
  console.log(
    `\n${made.chapters.flatMap(({ id, findings }) => findings.map((each) => `${id}  ${lineOf(each)}`)).join('\n')}`,
  )
  console.log(`\nThe report: ${relative(process.cwd(), join(out, 'index.html'))}, beside it report.md and report.json`)
}

function lineOf({ verdict, figure, text }: Finding): string {
  const colours = { falls: 'red', holds: 'green', missed: 'yellow' } as const
  const marks = { falls: '✗', holds: '✓', missed: '!' }
  return `${styleText(colours[verdict], `${marks[verdict]} ${figure}`)}  ${text}`
}

function optionsFrom(args: string[]) {
  try {
    const { values } = parseArgs({
      args,
      options: {
        full: { type: 'boolean' },
        smoke: { type: 'boolean' },
        only: { type: 'string' },
        variants: { type: 'string' },
        runs: { type: 'string' },
        out: { type: 'string' },
        draw: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help === true) {
      console.log(USAGE)
      process.exit(0)
    }
    const all = Object.keys(CHAPTERS)
    const ids = values.only?.split(',') ?? all.filter((id) => id.startsWith('E'))
    const strange = ids.filter((id) => !all.includes(id))
    if (strange.length > 0) throw new Error(`--only takes some of ${all.join(', ')}; got ${strange.join(', ')}`)
    const chosen: SizeName = values.full ? 'full' : values.smoke ? 'smoke' : 'usual'
    const times = values.runs === undefined ? RUNS[chosen] : Number(values.runs)
    if (!Number.isInteger(times) || times < 1)
      throw new Error(`--runs takes a whole number above 0; got ${values.runs}`)
    return {
      only: ids,
      size: chosen,
      runs: times,
      variants: new RegExp(values.variants ?? ''),
      out: values.out ?? fileURLToPath(new URL('results', import.meta.url)),
      draw: values.draw,
    }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exit(2)
  }
}
