/** A process that has a dashboard open on the store, or is scraped for metrics. Arguments: `dashboard` or `metrics`, URL. */
import { dashboard } from '../../src/dashboard/index.ts'
import { Millpond } from '../../src/index.ts'
import { metrics } from '../../src/web/index.ts'
import { ready } from '../role.ts'

/** As Prometheus does it unless told otherwise, in milliseconds. */
const SCRAPE = 15_000

const [what = '', url = ''] = process.argv.slice(2)
const pond = await Millpond.open(url)

/** The event stream, on which all views live. It ends after some minutes, and a browser comes back. */
async function look(): Promise<void> {
  const handle = dashboard(pond, { rights: () => ({ operator: true, payloads: true }) })
  for (;;) {
    const { body, status } = await handle(new Request('http://localhost/events'))
    if (body === null || status !== 200) throw new Error(`the event stream answers ${status}`)
    for await (const _ of body);
  }
}

if (what === 'dashboard') void look()
else {
  const handle = metrics(pond)
  const scrape = async () => {
    const answer = await handle(new Request('http://localhost/metrics'))
    await answer.text()
  }
  await scrape()
  setInterval(() => void scrape(), SCRAPE)
}
ready()
