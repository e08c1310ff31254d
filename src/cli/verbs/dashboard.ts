/** `millpond dashboard`: the dashboard of one or more stores, until it is stopped. */
import { mustBeLocal } from '../../dashboard/callers.ts'
import { dashboard } from '../../dashboard/index.ts'
import { Millpond } from '../../pond/millpond.ts'
import { HttpServer } from '../../serve/server.ts'
import { assertMigrated } from '../../stores/existing.ts'
import { errorSummary } from '../../values/errors/safe-error.ts'
import { type Arguments, JSON_LINES, STORE_MISSING } from '../arguments.ts'
import { Log } from '../serve/log.ts'
import { addressOf, isLoopback, tokensOf } from '../serve/settings.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, type Running } from '../verb.ts'

const OPTIONS = {
  store: {
    value: 'URL',
    multiple: true,
    help: 'sqlite:jobs.db, redis://…, postgres://…; or MILLPOND_STORE. Several are\nNAME=URL each',
  },
  port: { value: 'N', help: '8081 unless given; 0: any that is free' },
  host: { value: 'ADDRESS', help: '127.0.0.1 unless given; one that others can reach needs a token' },
  'token-file': { value: 'FILE', help: 'tokens, one a line, each of 16 characters at least; or MILLPOND_TOKEN' },
  'read-only': { help: 'nobody may change anything' },
  'no-payloads': { help: 'hides data, progress, results, logs and messages of errors' },
  redact: { value: 'PATH', multiple: true, help: 'hides a part of payloads, such as data.card.number or **.password' },
  ...JSON_LINES,
} as const
type Name = keyof typeof OPTIONS

export const verb = defineVerb<Name>({
  name: 'dashboard',
  summary: 'the queues in a browser: see, search, retry, limit',
  options: OPTIONS,
  notes:
    'Each store must be there, with tables of this release: millpond migrate makes them.\n' +
    'docs/dashboard.md tells how to mount it in an application instead, with rights of its own.',
  run: ({ args, terminal }) => start(args, (line) => terminal.err(line)),
})

async function start(args: Arguments<Name>, write: (line: string) => void): Promise<Running> {
  const stores = storesOf(args)
  const address = await addressOf(args.text('host') ?? '127.0.0.1')
  const tokens = tokensOf(args.text('token-file'), args.env)
  if (tokens.length === 0 && !isLoopback(address)) {
    throw new UsageError(
      `${address} can be reached by others: give a token, by --token-file or MILLPOND_TOKEN, or listen on 127.0.0.1`,
    )
  }
  const port = args.whole('port', 0, 65_535) ?? 8081
  const log = new Log(write, args.flag('json'))
  const ponds: Record<string, Millpond> = Object.create(null)
  const close = async () => void (await Promise.allSettled(Object.values(ponds).map((pond) => pond.close())))
  try {
    for (const [name, url] of stores) {
      await assertMigrated(url)
      ponds[name] = await Millpond.open(url)
    }
    const may = { operator: !args.flag('read-only'), payloads: !args.flag('no-payloads') }
    const handle = dashboard(
      { ...ponds },
      {
        ...(tokens.length === 0 && {
          rights: (request: Request) => {
            mustBeLocal(request)
            return { who: 'local', ...may }
          },
        }),
        tokens: tokens.map((token) => ({ token, ...may })),
        redact: args.texts('redact'),
        onAction: ({ who, action, queue, id, count }) =>
          log.info(`${action} ${queue}`, { who, count, ...(id !== undefined && { job: id }) }),
        onError: (error) => log.error(errorSummary(error), errorSummary(error)),
      },
    )
    const server = new HttpServer({ handle, stopping: () => {} })
    const origin = await server.listen(address, port)
    log.info(`dashboard at ${origin}/`, {
      stores: stores.map(([name]) => name).join(' '),
      token: tokens.length > 0 ? 'needed' : 'none',
    })
    return {
      stop: async (reason) => {
        log.info(`stopping: ${reason}`)
        const closing = close()
        await server.stop(5000)
        await closing
        log.info('stopped')
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** By name; a single one needs none. @throws UsageError. No message shows a URL, which may hold a secret. */
function storesOf(args: Arguments<Name>): [name: string, url: string][] {
  const given = args.texts('store')
  const texts = given.length > 0 ? given : [args.env.MILLPOND_STORE ?? ''].filter((url) => url !== '')
  if (texts.length === 0) throw new UsageError(STORE_MISSING)
  const named = texts.map((text): [string, string] => {
    const [, name, url] = /^([A-Za-z0-9_-]{1,40})=(.+)$/s.exec(text) ?? []
    if (name !== undefined && url !== undefined) return [name, url]
    if (texts.length > 1) throw new UsageError('of several stores each has a name: --store main=sqlite:jobs.db')
    return ['main', text]
  })
  if (new Set(named.map(([name]) => name)).size < named.length) throw new UsageError('two stores have the same name')
  return named
}
