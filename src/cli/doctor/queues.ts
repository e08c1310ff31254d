/** What can be wrong with the queues of a store, whichever it is. */

import { SETTING_NAMES } from '../../pond/queue-options.ts'
import type { QueueReport } from '../../pond/stats.ts'
import type { Finding } from '../../stores/examination.ts'
import { type Attention, attentionTo, type Heard, heardIn } from '../attention.ts'
import type { Opened } from '../open.ts'
import { optionName, settingText } from '../settings-text.ts'

/** Share of claims that lost their lease, and how many at least, from which on it is worth telling. */
const MANY_LOST = { share: 0.01, count: 10 }

const PROBLEMS: readonly Attention['kind'][] = ['noWorker', 'workersGone', 'full']
const WARNINGS: readonly Attention['kind'][] = ['paused', 'silent']

export async function examineQueues({ pond, store }: Opened): Promise<Finding[]> {
  const reports = await pond.stats()
  const workers = await heardIn(pond)
  const found = reports.flatMap((report) => queueFindings(report, workers))
  if (store.capabilities.settings) {
    for (const { queue } of reports) {
      const report = await store.operations.settings({ queue })
      if (report?.values.keepDead === 0) {
        const text = `${queue}: dead jobs are not kept: nobody sees what failed, or can retry it`
        found.push({ check: 'queues', level: 'warning', text, action: `millpond limits ${queue} --keep-dead 7d` })
      }
    }
  }
  return found.length > 0 ? found : [{ check: 'queues', level: 'ok', text: 'no queue needs attention' }]
}

function queueFindings(report: QueueReport, workers: Heard): Finding[] {
  const { queue, totals, overrides } = report
  const found: Finding[] = attentionTo(report, workers).map(({ kind, text, action }) => ({
    check: kind,
    level: PROBLEMS.includes(kind) ? 'problem' : WARNINGS.includes(kind) ? 'warning' : 'note',
    text: `${queue}: ${text}`,
    action,
  }))
  if (totals.lost >= MANY_LOST.count && totals.lost > (totals.done + totals.failed) * MANY_LOST.share) {
    found.push({
      check: 'lost',
      level: 'warning',
      text: `${queue}: ${totals.lost} claims were lost, since their workers fell silent for longer than the lease`,
      action: 'look whether workers crash or are killed, or block their event loop: docs/isolation.md',
    })
  }
  for (const name of SETTING_NAMES) {
    if (!Object.hasOwn(overrides, name)) continue
    const option = optionName(name)
    const text = `${queue}: an operator has set ${option} to ${settingText(name, overrides[name])}`
    const action = `millpond limits ${queue} --clear ${option}, when code is to decide again`
    found.push({ check: 'override', level: 'note', text, action })
  }
  return found
}
