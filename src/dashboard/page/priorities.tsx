/** Waits and run times of the last minutes, of all jobs and of each priority. */
import type { Percentiles, QueueReport } from '../../pond/stats.ts'
import { count, duration } from './format.ts'

export const Priorities = ({ report }: { report: QueueReport }) => (
  <table>
    <thead>
      <tr>
        <th scope="col">Priority</th>
        <th scope="col" class="num">
          Started
        </th>
        <th scope="col" class="num">
          Wait p50 · p95 · p99
        </th>
        <th scope="col" class="num">
          Run p50 · p95 · p99
        </th>
      </tr>
    </thead>
    <tbody>
      <Row name="All" wait={report.wait} run={report.run} />
      {report.priorities.length > 1 &&
        report.priorities.map(({ priority, wait, run }) => (
          <Row key={priority} name={String(priority)} wait={wait} run={run} />
        ))}
    </tbody>
  </table>
)

const Row = ({ name, wait, run }: { name: string; wait: Percentiles; run: Percentiles }) => (
  <tr>
    <th scope="row">{name}</th>
    <td class="num" data-label="Started">
      {count(wait.count)}
    </td>
    <td class="num" data-label="Wait p50 · p95 · p99">
      {textOf(wait)}
    </td>
    <td class="num" data-label="Run p50 · p95 · p99">
      {textOf(run)}
    </td>
  </tr>
)

const textOf = ({ p50, p95, p99 }: Percentiles): string => [p50, p95, p99].map((ms) => duration(ms ?? null)).join(' · ')
