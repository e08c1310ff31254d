/** What can be wrong with RabbitMQ, as far as AMQP tells: see `../doctor.ts`. */
import { loadAmqplib } from '../driver.ts'
import type { Finding, SchemaState } from '../examination.ts'
import { Link } from './connection/link.ts'
import { settingsOf } from './settings.ts'

const OLDEST = [3, 10] as const

/** @throws StoreUnavailable, InvalidOption, DriverMissing */
export async function examine(url: string): Promise<Finding[]> {
  const settings = settingsOf(url, {})
  const link = new Link(await loadAmqplib(), settings, `millpond doctor (process ${process.pid})`)
  try {
    const { connection } = await link.model()
    const { version } = connection.serverProperties
    return [versionFinding(version), nodesFinding(settings.nodes.length), rightsFinding(settings.credentials.username)]
  } finally {
    await link.close()
  }
}

/** Exchanges and queues are made when they are first used. */
export async function schemaState(url: string): Promise<SchemaState> {
  await examine(url)
  return { found: 1, newest: 1, isCurrent: true }
}

function versionFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
  const text = `RabbitMQ ${version}`
  if (isOld) return { check: 'version', level: 'problem', text, action: `use RabbitMQ ${OLDEST.join('.')} or later` }
  return { check: 'version', level: 'ok', text }
}

function nodesFinding(count: number): Finding {
  if (count > 1) return { check: 'nodes', level: 'ok', text: `the URL names ${count} nodes` }
  const text = 'the URL names one node: where it is lost, nobody reaches the others'
  return { check: 'nodes', level: 'note', text, action: 'name all nodes of a cluster: amqp://a,b,c/vhost' }
}

function rightsFinding(user: string): Finding {
  if (user !== 'guest') return { check: 'rights', level: 'ok', text: 'a user of its own' }
  const text = 'Millpond uses the user guest, whose password everybody knows'
  return { check: 'rights', level: 'warning', text, action: 'make a user of its own, and remove guest' }
}
