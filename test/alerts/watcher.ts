/** A process that takes part in alerts over the store of its argument, and writes a line for each that it tells. */
import { alerts } from '../../src/alerts/index.ts'
import { Millpond } from '../../src/index.ts'

const pond = await Millpond.open(process.argv[2] ?? '')
alerts(pond, {
  rules: [{ name: 'deep', when: { depth: 1 }, for: 0 }],
  notify: ({ state }) => void process.stdout.write(`${state}\n`),
  every: 100,
})
