import './fire.test.ts'
