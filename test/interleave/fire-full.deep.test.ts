import './fire-full.test.ts'
