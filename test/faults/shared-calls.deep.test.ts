import './shared-calls.test.ts'
