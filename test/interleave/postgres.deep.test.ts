import './postgres.test.ts'
