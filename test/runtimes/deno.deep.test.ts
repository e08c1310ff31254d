/** The tests that matter, on Deno. */
import { onRuntime } from './runtime.ts'

onRuntime('deno')
