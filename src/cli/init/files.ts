/** The files that `millpond init` writes: a web server that pushes, a worker, and what both share. */
import { SERVERS } from './servers.ts'

export const FRAMEWORKS = ['express', 'fastify', 'hono'] as const
export const STORES = ['sqlite', 'redis', 'postgres'] as const

export interface FilesFor {
  framework: (typeof FRAMEWORKS)[number]
  store: (typeof STORES)[number]
  ending: 'js' | 'ts'
}

const URLS = {
  sqlite: 'sqlite:jobs.db',
  redis: 'redis://localhost:6379',
  postgres: 'postgres://localhost:5432/postgres',
}
const CLIENTS = { sqlite: [], redis: ['ioredis'], postgres: ['pg'] } as const
const PACKAGES = { express: ['express'], fastify: ['fastify'], hono: ['hono', '@hono/node-server'] } as const

/**
 * @param hasManifest the folder has a package.json, which stays as it is
 * @param hasMillpond it is installed there: it may be one that the registry does not have
 */
export function filesFor({ framework, store, ending }: FilesFor, hasManifest: boolean, hasMillpond: boolean) {
  const packages = [...(hasMillpond ? [] : ['millpond']), ...CLIENTS[store], ...PACKAGES[framework]]
  const manifest = {
    private: true,
    type: 'module',
    scripts: { server: `node server.${ending}`, worker: `node worker.${ending}` },
  }
  const files: Record<string, string> = {
    [`queues.${ending}`]: queues(store, ending),
    [`server.${ending}`]: SERVERS[framework](ending),
    [`worker.${ending}`]: worker(ending),
    ...(hasManifest ? {} : { 'package.json': `${JSON.stringify(manifest, null, 2)}\n` }),
  }
  const start = [`node worker.${ending} &`, `node server.${ending}`]
  return { files, install: `npm install ${packages.join(' ')}`, start }
}

function queues(store: FilesFor['store'], ending: string): string {
  const isTypeScript = ending === 'ts'
  return `// The queues, the same for the server and for the worker.
${isTypeScript ? "import type { Millpond } from 'millpond'\n" : ''}
export const STORE = process.env.MILLPOND_STORE ?? '${URLS[store]}'

export const emails = (pond${isTypeScript ? ': Millpond' : ''}) =>
  pond.queue${isTypeScript ? '<{ to: string }>' : ''}('emails', {
    capacity: 100_000,
    retry: { attempts: 10, backoff: 'exponential' },
    // Of each group, such as a tenant, so many at once; groups take turns.
    limits: { group: { running: 5 } },
  })
`
}

function worker(ending: string): string {
  return `// Run as many of these as you need: node worker.${ending}
import { Millpond } from 'millpond'
import { emails, STORE } from './queues.${ending}'

// On SIGTERM and SIGINT the jobs that run may finish.
const pond = await Millpond.open(STORE, { signals: true })

emails(pond).work(
  async (job, { signal }) => {
    // Send the mail here, and pass the signal on. What throws is tried again, later and later.
    signal.throwIfAborted()
    console.log(\`a mail to \${job.data.to}, attempt \${job.attempt}\`)
    return { sent: new Date() }
  },
  { concurrency: 10 },
)
console.log('the worker is ready')
`
}
