import './move.test.ts'
