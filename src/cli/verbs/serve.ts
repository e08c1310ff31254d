/** `millpond serve` */
import { OPTIONS, serveSettings } from '../serve/settings.ts'
import { startServing } from '../serve/start.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'serve',
  summary: 'the queue for every language, over HTTP',
  options: OPTIONS,
  notes: 'Times are such as 250ms, 30s, 5m, 1h. The API is described at /openapi.json and in docs/serve.md.',
  run: async ({ args, terminal, stop }) =>
    (await startServing(await serveSettings(args), (line) => terminal.err(line), stop)) ?? EXIT.done,
})
