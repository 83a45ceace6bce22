package storetest

import (
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/internal/lapse"
)

// mistakes are stores that break one rule each, as their authors might.
var mistakes = []mistake{
	{"an append is not conditional on the head", []string{"conditions/AppendNeedsTheHead", "concurrency/OneOfManyWritersWins", "concurrency/HistoryHasAnOrder"},
		over(func(s sound) checkpoint.Store { return anyHead{s} })},
	{"the head is compared before it is locked", []string{"concurrency/OneOfManyWritersWins"},
		over(func(s sound) checkpoint.Store { return &lateLock{sound: s, meet: make(chan struct{})} })},
	{"success although nothing was written", []string{"conditions/AppendNeedsTheHead", "concurrency/OneOfManyWritersWins"},
		over(func(s sound) checkpoint.Store { return yesMan{s} })},
	{"ErrConflict although it was written", []string{"contract/AppendCountsWithoutGaps", "concurrency/OneOfManyWritersWins"},
		over(func(s sound) checkpoint.Store { return &falseConflict{sound: s} })},
	{"an append is seen entry by entry", []string{"concurrency/ReadersSeeWholeAppends"},
		over(func(s sound) checkpoint.Store { return seenInPart{s, newSet()} })},
	{"messages are drained before the append is seen", []string{"concurrency/ReadersSeeWholeAppends"},
		over(func(s sound) checkpoint.Store { return drainsSoon{s, newSet()} })},
	{"the status of a run is written behind its head", []string{"concurrency/InfoIsOfOneMoment"},
		over(func(s sound) checkpoint.Store { return twoTables{s, newSet()} })},
	{"the lease is not checked", []string{"conditions/AppendNeedsTheLease"},
		over(func(s sound) checkpoint.Store { return &anyLease{sound: s, last: newLeases()} })},
	{"a log is opened again", []string{"conditions/LogIsOpenedOnce"},
		over(func(s sound) checkpoint.Store { return reopener{s} })},
	{"a lease that is held is given again", []string{"conditions/LeaseIsExclusive"},
		over(func(s sound) checkpoint.Store { return &anyOwner{sound: s, last: newLeases()} })},
	{"who only amends gives way", []string{"conditions/LeaseIsExclusive"},
		over(func(s sound) checkpoint.Store { return givesWay{s} })},
	{"epochs do not rise", []string{"conditions/LeaseEpochsRise"},
		over(func(s sound) checkpoint.Store { return &oneEpoch{sound: s, last: newLeases()} })},
	{"a lease that has ended still appends", []string{"leases/LapsedLeaseChangesNothing", "leases/RenewalProlongs"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return lateAppend{lapses{s}} })},
	{"a lease that has ended still keeps snapshots", []string{"leases/LapsedLeaseChangesNothing"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return lateSnapshot{lapses{s}} })},
	{"a lease that has ended still trims", []string{"leases/LapsedLeaseChangesNothing"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return lateTrim{lapses{s}} })},
	{"a lease that has ended is renewed", []string{"leases/LapsedLeaseChangesNothing"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return lateRenew{lapses{s}} })},
	{"a lease that has ended is in the way of the next", []string{"leases/LapsedLeaseIsNobodys", "leases/LateOwnerLeavesTheNextAlone"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return neverFree{lapses{s}} })},
	{"a lease that has ended keeps its run from being deleted", []string{"leases/LapsedLeaseIsNobodys"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return neverDeleted{lapses{s}} })},
	{"who has a lease that has ended is told", []string{"leases/LapsedLeaseIsNobodys", "leases/LapsedLeaseChangesNothing", "leases/RenewalProlongs"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return tellsTheDead{lapses{s}} })},
	{"who has a lease that has ended is listed", []string{"leases/LapsedLeaseIsNobodys"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return listsTheDead{lapses{s}} })},
	{"a renewal is only promised", []string{"leases/RenewalProlongs"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return promises{lapses{s}} })},
	{"a renewal does nothing", []string{"leases/RenewalProlongs"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return noRenewal{lapses{s}} })},
	{"a lease that has ended still begins a run", []string{"leases/LapsedLeaseOfNoRun"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return lateFirst{lapses{s}} })},
	{"a lease of no run that has ended is in the way of a fork", []string{"leases/LapsedLeaseOfNoRun"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return heldForks{lapses{s}} })},
	{"an owner whose lease has ended gets the same one again", []string{"leases/LapsedLeaseOfNoRun"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return sameLease{lapses{s}, newSet()} })},
	{"a release takes the lease of the next", []string{"leases/LateOwnerLeavesTheNextAlone"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return anyRelease{lapses{s}} })},
	{"a run is deleted that somebody else has taken", []string{"leases/LateOwnerLeavesTheNextAlone"},
		lapsing(func(s *lapse.Store) checkpoint.Store { return deletesHeld{lapses{s}} })},
	{"an append is torn where an entry is bad", []string{"atomicity/AppendIsAllOrNothing"},
		over(func(s sound) checkpoint.Store { return goodPart{s} })},
	{"an entry that holds a NUL is refused", []string{"contract/AppendIsReadBack"},
		over(func(s sound) checkpoint.Store { return noNUL{s} })},
	{"texts of entries are cut off", []string{"contract/AppendIsReadBack"},
		over(func(s sound) checkpoint.Store {
			return narrow{s, func(e *checkpoint.Entry) { e.Path, e.ID = cut(e.Path), cut(e.ID) }}
		})},
	{"numbers of entries are small", []string{"contract/AppendIsReadBack"},
		over(func(s sound) checkpoint.Store {
			return narrow{s, func(e *checkpoint.Entry) { e.Step, e.Attempt = int(int16(e.Step)), int(int16(e.Attempt)) }}
		})},
	{"a message that holds a NUL is refused", []string{"conditions/PostIsIdempotent"},
		over(func(s sound) checkpoint.Store { return noNUL{s} })},
	{"a snapshot is kept as a text", []string{"contract/SnapshotIsTheNewestUpTo"},
		over(func(s sound) checkpoint.Store { return textSnapshots{s} })},
	{"a graph is kept as its JSON means it", []string{"contract/GraphIsKeptOnce"},
		over(func(s sound) checkpoint.Store { return meansGraphs{s} })},
	{"an append is written entry by entry", []string{"cancellation/CancelledAnywhereIsWholeOrNot"},
		over(func(s sound) checkpoint.Store { return oneByOne{s} })},
	{"a fork is made run by run", []string{"atomicity/ForkIsAllOrNothing", "crash/ForkUnderWayIsWholeOrNot"},
		over(func(s sound) checkpoint.Store { return forkByFork{s} })},
	{"an archive is read before the lease is looked at", []string{"atomicity/RestoreIsAllOrNothing"},
		over(func(s sound) checkpoint.Store { return readsFirst{s} })},
	{"an append that is refused drains messages", []string{"atomicity/PostsAreDrainedWithAnAppend"},
		over(func(s sound) checkpoint.Store { return &drainsFirst{sound: s, gone: newSet()} })},
	{"a message of the same id takes the place of another", []string{"conditions/PostIsIdempotent", "concurrency/PostOfOneIDAtOnce"},
		over(func(s sound) checkpoint.Store { return lastPost{s} })},
	{"posting again is refused", []string{"conditions/PostIsIdempotent"},
		over(func(s sound) checkpoint.Store { return postOnce{s} })},
	{"a message that is posted again is behind the others", []string{"conditions/PostIsIdempotent"},
		over(func(s sound) checkpoint.Store { return movesPosts{s, new(sync.Mutex)} })},
	{"blanks at the end of a message's id do not count", []string{"isolation/MessageIDsThatAreHard"},
		over(func(s sound) checkpoint.Store {
			return alikePosts{s, func(id string) string { return strings.TrimRight(id, " ") }}
		})},
	{"long ids of messages are cut off", []string{"isolation/MessageIDsThatAreHard"},
		over(func(s sound) checkpoint.Store {
			return alikePosts{s, func(id string) string { return id[:min(len(id), 255)] }}
		})},
	{"messages are told a page at most", []string{"contract/ManyMessages"},
		over(func(s sound) checkpoint.Store { return fewPosts{s} })},
	{"an append writes back the messages that it has not drained", []string{"concurrency/PostBesideADrain"},
		over(func(s sound) checkpoint.Store { return writesBack{hiding{s, newSet()}} })},
	{"who watches is told of a message that is not there yet", []string{"contract/WatchersMissNoMessage"},
		over(func(s sound) checkpoint.Store {
			return earlyTelling{s, new(sync.Mutex), make(map[string][]chan struct{})}
		})},
	{"messages are in the order of a language", []string{"contract/PostsAreInByteOrder"},
		over(func(s sound) checkpoint.Store { return collated{s} })},
	{"claims are not looked at", []string{"conditions/ClaimNeedsThatNobodyHasPosted"},
		over(func(s sound) checkpoint.Store { return noClaims{s} })},
	{"a claim is looked at before the append", []string{"concurrency/ClaimBesideAPost"},
		over(func(s sound) checkpoint.Store { return earlyClaims{s, make(chan struct{})} })},
	{"a message is kept of a run that was deleted meanwhile", []string{"concurrency/PostBesideADelete"},
		over(func(s sound) checkpoint.Store {
			return latePost{s, new(sync.Mutex), make(map[string][]checkpoint.Post)}
		})},
	{"who watches is told of a message when Post has returned", []string{"contract/PostWakesWatchers"},
		over(func(s sound) checkpoint.Store { return lateTelling{s} })},
	{"who watches a run before it is there is told nothing", []string{"contract/PostWakesWatchers"},
		over(func(s sound) checkpoint.Store { return watchesOnlyRuns{s} })},
	{"a run is deleted that was acquired meanwhile", []string{"concurrency/AcquireBesideADelete"},
		over(func(s sound) checkpoint.Store { return lateDelete{s, newLeases()} })},
	{"a fork is made of runs that were made meanwhile", []string{"concurrency/OneOfManyForksWins"},
		over(func(s sound) checkpoint.Store { return lateFork{s} })},
	{"a fork has the base of a run that was deleted meanwhile", []string{"concurrency/BaseBesideADelete"},
		over(func(s sound) checkpoint.Store { return lateShare{s} })},
	{"a graph is kept in the place of one that was kept meanwhile", []string{"concurrency/OneOfManyGraphsIsKept"},
		over(func(s sound) checkpoint.Store { return lateGraph{s} })},
	{"ids differ by case alone and are one", []string{"isolation/RunIDsThatAreHard"},
		over(func(s sound) checkpoint.Store { return renamed{s, lower} })},
	{"long ids are cut off", []string{"isolation/RunIDsThatBeginAlike"},
		over(func(s sound) checkpoint.Store { return renamed{s, cut} })},
	{"a page begins with the last run of the one before", []string{"paging/ListPages"},
		over(func(s sound) checkpoint.Store { return samePage{s} })},
	{"a run that is made again is listed where the first one was", []string{"paging/ListIsNewestFirst"},
		over(func(s sound) checkpoint.Store { return oldPlace{s, newSet()} })},
	{"filters go by a language", []string{"paging/FiltersAreExact"},
		over(func(s sound) checkpoint.Store { return filtersAlike{s, strings.ToLower} })},
	{"filters pass over blanks", []string{"paging/FiltersAreExact"},
		over(func(s sound) checkpoint.Store { return filtersAlike{s, strings.TrimSpace} })},
	{"a listing behind a run that is not selected begins anew", []string{"paging/ListFilters"},
		over(func(s sound) checkpoint.Store { return selectedAgain{s} })},
	{"a run that goes on is listed under the status that it had at rest", []string{"contract/StatusFollowsEntries"},
		over(func(s sound) checkpoint.Store { return indexed{s, newSet()} })},
	{"a run that is completed takes no messages", []string{"contract/StatusFollowsEntries"},
		over(func(s sound) checkpoint.Store { return takesNoMore{s} })},
	{"runs are listed by id", []string{"paging/ListIsNewestFirst"},
		over(func(s sound) checkpoint.Store { return byName{s} })},
	{"a listing is without origins", []string{"paging/ListTellsWhatStatTells"},
		over(func(s sound) checkpoint.Store { return lean{s, func(i *checkpoint.Info) { i.Origin = nil }} })},
	{"a listing is without bases", []string{"paging/ListTellsWhatStatTells"},
		over(func(s sound) checkpoint.Store { return lean{s, func(i *checkpoint.Info) { i.Base = "" }} })},
	{"a listing is without pins", []string{"paging/ListTellsWhatStatTells"},
		over(func(s sound) checkpoint.Store { return lean{s, func(i *checkpoint.Info) { i.Pins = nil }} })},
	{"a listing says of every run that it begins with its first entry", []string{"paging/ListTellsWhatStatTells"},
		over(func(s sound) checkpoint.Store { return lean{s, func(i *checkpoint.Info) { i.First = 1 }} })},
	{"times of a filter are finer than those of runs", []string{"paging/ListFilters"},
		over(func(s sound) checkpoint.Store { return fine{s} })},
	{"what can't be in a filter is left out", []string{"paging/ListRefusesWhatNoRunIs"},
		over(func(s sound) checkpoint.Store { return lenient{s} })},
	{"returned memory is shared", []string{"contract/MemoryIsNotShared"},
		over(func(s sound) checkpoint.Store { return &lender{sound: s, graphs: newSet()} })},
	{"a snapshot newer than asked", []string{"contract/SnapshotIsTheNewestUpTo"},
		over(func(s sound) checkpoint.Store { return newestSnapshot{s} })},
	{"Stat of an older state", []string{"contract/AppendCountsWithoutGaps", "concurrency/HistoryHasAnOrder"},
		over(func(s sound) checkpoint.Store { return &cached{sound: s} })},
	{"Read forgets the last entry", []string{"contract/AppendIsReadBack", "archive/RestoreIsExact", "contract/MemoryIsNotShared"},
		over(func(s sound) checkpoint.Store { return forgetsLast{s} })},
	{"deleting does nothing", []string{"delete/DeleteRemovesEverything", "contract/GrowthWakesFollowers", "contract/EndOfALogWakesFollowers"},
		over(func(s sound) checkpoint.Store { return keeper{s} })},
	{"nobody is woken by a delete", []string{"contract/EndOfALogWakesFollowers"},
		over(func(s sound) checkpoint.Store { return deaf{s} })},
	{"a closed store goes on", []string{"contract/ClosedStoreRefuses"},
		over(func(s sound) checkpoint.Store { return open{s} })},
	{"deleting leaves messages", []string{"delete/DeleteRemovesEverything"},
		over(func(s sound) checkpoint.Store { return &leavesPosts{sound: s} })},
	{"deleting leaves snapshots", []string{"delete/NothingIsLeftForTheNext"},
		over(func(s sound) checkpoint.Store { return leavesSnapshots{s, newSet()} })},
	{"a fork has the messages of a run that was deleted", []string{"delete/NothingIsLeftForTheNext"},
		over(func(s sound) checkpoint.Store { return forksOnPosts{s, newSet()} })},
	{"a deletion takes the graph", []string{"delete/GraphOutlivesItsRuns"},
		over(func(s sound) checkpoint.Store { return &takesGraph{sound: s, gone: newSet()} })},
	{"the first deletion takes the base", []string{"fork/BaseLivesWithItsRuns"},
		over(func(s sound) checkpoint.Store { return &takesBase{sound: s, gone: newSet()} })},
	{"a fork makes a page of runs at most", []string{"fork/ForkOfManyRuns"},
		over(func(s sound) checkpoint.Store { return aPageOfForks{s} })},
	{"a trim takes the messages along", []string{"trim/TrimKeepsPinsAndMessages"},
		over(func(s sound) checkpoint.Store { return trimsPosts{hiding{s, newSet()}} })},
	{"a trim keeps one pin", []string{"trim/TrimKeepsPinsAndMessages"},
		over(func(s sound) checkpoint.Store { return onePin{s} })},
	{"a trim drops its base", []string{"trim/TrimDropsThePast"},
		over(func(s sound) checkpoint.Store { return &dropsBase{sound: s, gone: newSet()} })},
	{"a log is read page by page", []string{"trim/ReadGoesOnWhileTrimmed"},
		over(func(s sound) checkpoint.Store { return pageByPage{s} })},
	{"a cancelled context writes anyway", []string{"cancellation/CancelledContextChangesNothing"},
		over(func(s sound) checkpoint.Store { return uncancelled{s} })},
	{"a cancelled context deletes anyway", []string{"cancellation/CancelledContextChangesNothing"},
		over(func(s sound) checkpoint.Store { return uncancelledDelete{s} })},
	{"a cancelled context forks anyway", []string{"cancellation/CancelledContextChangesNothing"},
		over(func(s sound) checkpoint.Store { return uncancelledFork{s} })},
	{"a cancelled context restores anyway", []string{"cancellation/CancelledContextChangesNothing"},
		over(func(s sound) checkpoint.Store { return uncancelledRestore{s} })},
	{"a cancelled context takes the lease anyway", []string{"cancellation/CancelledContextChangesNothing"},
		over(func(s sound) checkpoint.Store { return uncancelledAcquire{s} })},
	{"cancelled is said of what was written", []string{"cancellation/CancelledAnywhereIsWholeOrNot"},
		over(func(s sound) checkpoint.Store { return cancelledLate{s} })},
	{"damage is the end of the log", []string{"corruption/FlippedBitIsFound", "corruption/LostAppendIsFound", "corruption/ForeignAppendIsFound", "corruption/OlderAppendIsFound"},
		over(func(s sound) checkpoint.Store { return quiet{s, nil} })},
	{"Read does not hand its context on", []string{"corruption/ForgedAppendIsFound"},
		over(func(s sound) checkpoint.Store { return noDigests{s} })},
	{"damage is nothing found", []string{"corruption/FlippedBitIsFound", "corruption/LostAppendIsFound"},
		over(func(s sound) checkpoint.Store { return quiet{s, checkpoint.ErrNotFound} })},
	{"a damaged snapshot is none", []string{"corruption/DamagedSnapshotIsFound"},
		over(func(s sound) checkpoint.Store { return noSnapshot{s} })},
	{"a damaged snapshot is handed out", []string{"corruption/DamagedSnapshotIsFound"},
		over(func(s sound) checkpoint.Store { return anySnapshot{s} })},
	{"a damaged message is left out", []string{"corruption/DamagedMessageIsFound"},
		over(func(s sound) checkpoint.Store { return dropsDamaged{s} })},
	{"a damaged base is none", []string{"corruption/DamagedBaseIsFound"},
		over(func(s sound) checkpoint.Store { return noBaseThere{s} })},
	{"a damaged base is shared", []string{"corruption/DamagedBaseIsNotShared"},
		over(func(s sound) checkpoint.Store { return sharesDamaged{s} })},
	{"a run that can't be read is not there", []string{"corruption/DamagedInfoIsFound"},
		over(func(s sound) checkpoint.Store { return startsOver{s} })},
	{"a run that can't be read is begun anew", []string{"corruption/DamagedInfoIsFound"},
		over(func(s sound) checkpoint.Store { return beginsAnew{s} })},
	{"what was known of a run once is told", []string{"corruption/OlderInfoIsFound"},
		over(func(s sound) checkpoint.Store { return tellsOnce{s} })},
	{"what was known of a run once is listed", []string{"corruption/OlderInfoIsFound"},
		over(func(s sound) checkpoint.Store { return listsOnce{s} })},
	{"a listing that ends with damage is without the runs before it", []string{"corruption/DamagedInfoIsFound"},
		over(func(s sound) checkpoint.Store { return hides{s} })},
	{"a listing does not say which run is damaged", []string{"corruption/DamagedInfoIsFound"},
		over(func(s sound) checkpoint.Store { return namesNobody{s} })},
	{"some logs are looked at when the store is opened, and no others", []string{"corruption/FlippedBitIsFound", "corruption/LostAppendIsFound", "corruption/ForeignAppendIsFound", "corruption/OlderAppendIsFound"},
		looking(func(s sound) checkpoint.Store { return quiet{s, nil} })},
	{"some snapshots are looked at then", []string{"corruption/DamagedSnapshotIsFound"},
		looking(func(s sound) checkpoint.Store { return anySnapshot{s} })},
	{"some messages are looked at then", []string{"corruption/DamagedMessageIsFound"},
		looking(func(s sound) checkpoint.Store { return dropsDamaged{s} })},
	{"some bases are looked at then", []string{"corruption/DamagedBaseIsFound"},
		looking(func(s sound) checkpoint.Store { return noBaseThere{s} })},
	{"some bases are looked at then, and the others shared", []string{"corruption/DamagedBaseIsNotShared"},
		looking(func(s sound) checkpoint.Store { return sharesDamaged{s} })},
	{"some runs are looked at then", []string{"corruption/DamagedInfoIsFound", "corruption/OlderInfoIsFound"},
		looking(func(s sound) checkpoint.Store { return tellsOnce{s} })},
	{"the last write is lost on reopening", []string{"durability/EverythingIsThereAgain"}, forgetful(1)},
	{"pins are lost on reopening", []string{"durability/ForksAreThereAgain"}, unpinned},
	{"an append is acknowledged before it is durable", []string{"crash/AcknowledgedSurvivesACrash", "crash/UnderWayIsWholeOrNot"}, hasty},
	{"a message is acknowledged before it is durable", []string{"crash/EachWriteSurvivesACrash"}, lately("Post")},
	{"a graph is acknowledged before it is durable", []string{"crash/EachWriteSurvivesACrash"}, lately("PutGraph")},
	{"what is restored is acknowledged before it is durable", []string{"crash/EachWriteSurvivesACrash"}, lately("Restore")},
	{"a crash leaves the lease with the dead", []string{"crash/LeaseOfTheDeadIsFree"}, haunted},
	{"a trim writes its base later", []string{"crash/TrimUnderWayIsWholeOrNot"}, torn(func(s tearing) checkpoint.Store { return lateBase{s} })},
	{"a deletion removes messages later", []string{"crash/DeleteUnderWayIsWholeOrNot"}, torn(func(s tearing) checkpoint.Store { return lateClear{s} })},
	{"a deleted run comes back", []string{"durability/DeletedStaysDeleted", "crash/DeletedStaysDeletedOverACrash"}, undead},
	{"without room a message is dropped in silence", []string{"limits/FullChangesNothing"},
		over(func(s sound) checkpoint.Store { return dropsPosts{s} })},
	{"without room a graph is dropped in silence", []string{"limits/FullChangesNothing"},
		over(func(s sound) checkpoint.Store { return quietly{s, "PutGraph"} })},
	{"without room a trim is left out in silence", []string{"limits/FullChangesNothing"},
		over(func(s sound) checkpoint.Store { return quietly{s, "Trim"} })},
	{"without room nothing is restored, in silence", []string{"limits/FullChangesNothing"},
		over(func(s sound) checkpoint.Store { return quietly{s, "Restore"} })},
	{"an append too large is made", []string{"limits/TooLargeChangesNothing"}, limited},
}

// looking finds damage to some runs when it is opened.
func looking(wrap func(sound) checkpoint.Store) Factory {
	f := over(wrap)
	corrupt := f.Corrupt
	f.Corrupt = func(t testing.TB, dir string, s checkpoint.Store, d Damage) (checkpoint.Store, error) {
		switch d.At.Run {
		case "first", "middle", "flipped", "runs":
			return nil, checkpoint.ErrCorrupt
		}
		return corrupt(t, dir, s, d)
	}
	return f
}

// forgetful loses the last writes when it is opened again.
func forgetful(n int) Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	f.Open = openUnsynced
	f.Reopen = func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		return sound{s.(wrapper).inner().Crash(n)}
	}
	return f
}

// unpinned keeps pins in memory alone.
var unpinned = func() Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	f.Reopen = func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		return noPins{sound{s.(wrapper).inner()}}
	}
	return f
}()

// hasty does not wait for the disk.
var hasty = func() Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	f.Open = openUnsynced
	return f
}()

// haunted is found held by who has died.
var haunted = func() Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	crash := f.Crash
	f.Crash = func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store {
		s = crash(t, dir, s)
		if _, err := s.Acquire(t.Context(), "run", "the dead"); err != nil {
			t.Fatal(err)
		}
		return s
	}
	return f
}()

// undead writes deletions down later.
var undead = func() Factory {
	f := lately("Delete")
	f.Reopen = f.Crash
	return f
}()

// limited says of itself that it has limits.
var limited = func() Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	f.Limits.Append = 1 << 10
	return f
}()
