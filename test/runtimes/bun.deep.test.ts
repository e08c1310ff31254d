/** The tests that matter, on Bun. */
import { onRuntime } from './runtime.ts'

onRuntime('bun')
