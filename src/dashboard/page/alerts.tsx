/** Rules of alerts, how they stand, and who was told. */
import type { AlertRow, AlertsPage, DeliveryRow } from '../views.ts'
import { count, duration } from './format.ts'
import { useAsk, useLive } from './live.ts'
import { Name } from './name.tsx'
import { Ago, Asking, Badge, Empty, Fault } from './parts.tsx'
import { jobLink, queueLink } from './route.ts'

export const Alerts = () => {
  const stores = useLive().tick?.stores.filter(({ capabilities }) => capabilities.lists) ?? []
  return (
    <>
      <h1>Alerts</h1>
      {stores.map(({ name }) => (
        <StoreAlerts key={name} store={name} title={stores.length > 1 ? name : undefined} />
      ))}
    </>
  )
}

const StoreAlerts = ({ store, title }: { store: string; title: string | undefined }) => {
  const { answer, fault } = useAsk<AlertsPage>('alerts', { store })
  const { rules, told = [] } = answer ?? {}
  return (
    <section>
      {title !== undefined && <h2>{title}</h2>}
      <Fault text={fault} />
      {answer === undefined && fault === undefined && <Asking />}
      {rules === null && (
        <Empty>
          No program watches any rules here: see <code>alerts</code> in the documentation.
        </Empty>
      )}
      {rules?.length === 0 && <Empty>There is no rule for a queue that you may see.</Empty>}
      {rules != null && rules.length > 0 && (
        <table class="alerts">
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col">Fires when</th>
              <th scope="col">State</th>
              <th scope="col">Last told</th>
            </tr>
          </thead>
          <tbody>
            {rules.map((rule) => (
              <Rule key={rule.name} store={store} rule={rule} told={told.find((one) => one.rule === rule.name)} />
            ))}
          </tbody>
        </table>
      )}
      {told.length > 0 && <Told store={store} told={told} />}
    </section>
  )
}

const WHEN: Readonly<Record<string, (above: number) => string>> = {
  waitP95: (above) => `one job in 20 waited for more than ${duration(above)}`,
  oldest: (above) => `the oldest job has waited for more than ${duration(above)}`,
  depth: (above) => `more than ${count(above)} jobs wait`,
  failures: (above) => `more than ${count(above)} attempts failed in 5 minutes`,
  dead: (above) => `there are more than ${count(above)} dead jobs`,
  noWorker: () => 'jobs wait, and no worker is there',
}
const KINDS: Readonly<Record<string, string>> = { firing: 'alarm', recovering: 'warn', pending: 'note' }

interface RuleProps {
  store: string
  rule: AlertRow
  told: DeliveryRow | undefined
}

const Rule = ({ store, rule: { name, queue, metric, above, for: lasting, states }, told }: RuleProps) => (
  <tr>
    <th scope="row" class="long">
      {name}
      <small class="mute">{queue === null ? 'every queue' : <Name text={queue} />}</small>
    </th>
    <td data-label="Fires when">
      {WHEN[metric]?.(above) ?? `${metric} > ${above}`}
      {lasting > 0 && <small class="mute">for {duration(lasting)}</small>}
    </td>
    <td data-label="State">
      {states.length === 0 && <span class="mute">quiet</span>}
      {states.slice(0, 20).map((state) => (
        <div key={state.queue} class="long">
          <Badge kind={KINDS[state.phase] ?? 'plain'}>{state.phase}</Badge>{' '}
          <a data-row href={queueLink(store, state.queue)}>
            <Name text={state.queue} />
          </a>{' '}
          <span class="mute">
            for <Ago at={state.since} />
          </span>
        </div>
      ))}
      {states.length > 20 && <span class="mute">and {states.length - 20} more queues</span>}
    </td>
    <td data-label="Last told">{told && <Delivered store={store} told={told} />}</td>
  </tr>
)

const Delivered = ({ store, told: { id, turn, state, at, code } }: { store: string; told: DeliveryRow }) => (
  <>
    <a href={jobLink(store, id)}>{turn}</a>{' '}
    {state === 'done' ? (
      <span class="mute">
        <Ago at={at} says=" ago" />
      </span>
    ) : (
      <span class={state === 'dead' ? 'alarm' : 'warn'}>
        {code === null ? 'not yet' : state === 'dead' ? `given up: ${code}` : `to be tried again: ${code}`}
      </span>
    )}
  </>
)

const Told = ({ store, told }: { store: string; told: readonly DeliveryRow[] }) => (
  <>
    <h2 class="below">Who was told, the last 7 days</h2>
    <table class="told">
      <thead>
        <tr>
          <th scope="col">Rule</th>
          <th scope="col">Queue</th>
          <th scope="col">Told</th>
          <th scope="col" class="num">
            Attempts
          </th>
        </tr>
      </thead>
      <tbody>
        {told.map((one) => (
          <tr key={one.id}>
            <th scope="row">{one.rule}</th>
            <td data-label="Queue">
              <a data-row href={queueLink(store, one.queue)}>
                <Name text={one.queue} />
              </a>
            </td>
            <td data-label="Told">
              <Delivered store={store} told={one} />
            </td>
            <td class="num" data-label="Attempts">
              {one.attempt}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </>
)
