/** Prometheus over the targets that it is given. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { guard, type Running } from './guard.ts'
import { freePort } from './ports.ts'
import { launch, type Recipe, ServerProcess } from './process.ts'
import { prometheusPrograms } from './programs.ts'

export interface PrometheusOptions {
  /** By the name of the job: `host:port` of what serves `/metrics`. */
  jobs: Readonly<Record<string, readonly string[]>>
  /** Sent as `Authorization: Bearer TOKEN`. */
  token?: string
  /** Files of rules. */
  rules?: readonly string[]
  /** Between scrapes. Default 250 ms. */
  interval?: string
}

/** A sample of an instant vector. */
export interface Result {
  metric: Readonly<Record<string, string>>
  value: number
}

export class PrometheusServer extends ServerProcess {
  /** What its HTTP API answers as `data`. @throws if it answers an error */
  async ask(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { status, data, error }: { status: string; data: Record<string, unknown>; error?: string } = JSON.parse(
      await response.text(),
    )
    if (status !== 'success') throw new Error(`${JSON.stringify(parameters)}: ${error}`)
    return data
  }

  /** An instant vector, of now. */
  async query(query: string): Promise<Result[]> {
    const { result } = await this.ask('query', { query })
    if (!Array.isArray(result)) throw new Error(`${query} is no vector`)
    return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
  }
}

export async function startPrometheus({
  jobs,
  token,
  rules = [],
  interval = '250ms',
}: PrometheusOptions): Promise<PrometheusServer> {
  const { server } = await prometheusPrograms()
  const folder = await guard().folder()
  const port = await freePort()
  const file = join(folder, 'prometheus.yml')
  // JSON is YAML, too.
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: rules,
    scrape_configs: Object.entries(jobs).map(([job, targets]) => ({
      job_name: job,
      static_configs: [{ targets }],
      ...(token !== undefined && { authorization: { credentials: token } }),
    })),
  }
  await writeFile(file, JSON.stringify(config))
  const recipe: Recipe = {
    ...{ name: 'prometheus', url: `http://127.0.0.1:${port}`, port, folder, command: server },
    args: [
      ...[`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`],
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    ready: /Server is ready to receive web requests/,
    quit: 'SIGTERM',
    drop: 'SIGKILL',
  }
  const running: Running = await launch(recipe)
  return new PrometheusServer(recipe, running)
}
