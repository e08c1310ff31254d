/** `millpond migrate` */
import { Millpond } from '../../pond/millpond.ts'
import { schemaState } from '../../stores/doctor.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'migrate',
  summary: 'makes the tables of the store, or brings them up to date',
  options: { 'dry-run': { help: 'only tells; exit code 3 if something is to be done' }, ...STORE, ...JSON_LINES },
  notes:
    'Every start of a program does the same, if its role may. This is for deploys in which another role does it.\n' +
    'Any number of them may run at once.',
  async run({ args, terminal }) {
    const url = args.store()
    const isDry = args.flag('dry-run')
    const before = await schemaState(url)
    if (!isDry) await (await Millpond.open(url)).close()
    const after = isDry ? before : await schemaState(url)
    const isChanged = !isDry && !before.isCurrent
    if (args.flag('json')) terminal.out(`${jsonText({ before, after, changed: isChanged })}\n`)
    else if (isDry && !before.isCurrent)
      terminal.out(`Version ${before.found} is there; this release makes ${before.newest}. Nothing was changed.\n`)
    else if (isChanged) terminal.out(`Brought up to date: version ${after.found}.\n`)
    else terminal.out(`Up to date: version ${after.found}.\n`)
    return isDry && !before.isCurrent ? EXIT.refused : EXIT.done
  },
})
