import './load.test.ts'
