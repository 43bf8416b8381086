// Package group runs many updates in one transaction: group commit, for stores that make every change in one place.
//
// Here belongs how updates wait, share a transaction, are divided when one of them spoils it, and are answered. What a
// transaction is, and what it keeps, is the [Database]'s.
//
// # Groups
//
// One goroutine runs transactions, one after the other. It takes the updates that wait, runs them in one, and commits: so a
// hundred callers share one wait for the disk, and no update waits for a lock. An update that fails before it wrote anything
// just has its error. When one fails after it wrote, or the commit does, the transaction is rolled back and the others are
// run again without it; when it was none of them in particular, each is run for itself. There are no savepoints: failures
// are rare, and savepoints would be paid for by every update. A function may panic or end its goroutine, as a test's does
// that fails; either comes out of its Update.
//
// # Commit, then sync
//
// A database may commit without waiting for the disk and be told to sync later ([Options].Sync). The next transaction then
// runs while another goroutine syncs, and the processor and the disk work at once. A sync covers all that was committed
// before it began. Two rules make this as good as a commit that waits:
//
//   - An update is answered after the sync that covers its transaction. One that wrote nothing, or failed, is as well: what
//     it saw may have been another's, not yet on the disk.
//   - A reader beside the transactions calls [Writer.Mark] once it has its snapshot, and before it gives out anything that
//     it read waits for [Writer.Synced] with that mark. So nobody sees what a loss of power could take back.
//
// A transaction takes further updates as long as a commit waits for its sync: its own would have to wait for that anyway.
// When the disk is free it commits, unless
//
//   - those who were just answered are about to come back and the disk is slower than they are: then it waits a moment for
//     them, and all share the next sync;
//   - more updates wait and the transaction is still short: it runs for about twice as long as a sync takes, so that on a
//     fast disk half of the callers run while the others' sync is under way.
//
// An update that is alone is synced by the goroutine that committed it, which spares it two changes of goroutine.
//
// A sync that failed is final. The system may have dropped what it could not write, and a second sync would report success
// without it. From then on every call returns [store.ErrSyncFailed].
package group
