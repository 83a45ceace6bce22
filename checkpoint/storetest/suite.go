package storetest

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Run checks every rule of [checkpoint.Store], each in a subtest named group/case with a store of
// its own. What f does not offer is skipped, case by case, with the reason. If a store panics, or a
// call of it does not return, the case fails and the others go on.
func Run(t *testing.T, f Factory) {
	t.Helper()
	if f.Open == nil {
		t.Fatal("storetest: Factory.Open is nil: give a function that opens a store that is new and empty")
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					if reason := f.lacks(g); reason != "" {
						t.Skip(reason)
					}
					c.try(t, f)
				})
			}
		})
	}
}

// A group is a part of the contract.
type group struct {
	name  string
	needs need
	cases []rule
}

// A rule is one case of the suite. What it checks is said by the comment of check.
type rule struct {
	name  string
	check func(*trial, checkpoint.Store)
}

var groups = []group{
	{"contract", nothing, []rule{
		{"AppendIsReadBack", appendIsReadBack},
		{"AppendCountsWithoutGaps", appendCountsWithoutGaps},
		{"AppendOfManyMegabytes", appendOfManyMegabytes},
		{"ReadBeginsAndEndsInsideAppends", readBeginsAndEndsInsideAppends},
		{"ReadSeesTheLogAsItWas", readSeesTheLogAsItWas},
		{"ReadCanBeLeft", readCanBeLeft},
		{"LongLogIsReadBack", longLogIsReadBack},
		{"StatusFollowsEntries", statusFollowsEntries},
		{"StatTellsTheOpening", statTellsTheOpening},
		{"StatTellsTheGraphOfNow", statTellsTheGraphOfNow},
		{"PostsAreInByteOrder", postsAreInByteOrder},
		{"ManyMessages", manyMessages},
		{"PostWakesWatchers", postWakesWatchers},
		{"WatchersMissNoMessage", watchersMissNoMessage},
		{"AppendWakesFollowers", appendWakesFollowers},
		{"GrowthWakesFollowers", growthWakesFollowers},
		{"FollowersMissNoAppend", followersMissNoAppend},
		{"EndOfALogWakesFollowers", endOfALogWakesFollowers},
		{"SnapshotIsTheNewestUpTo", snapshotIsTheNewestUpTo},
		{"SnapshotOfManyMegabytes", snapshotOfManyMegabytes},
		{"GraphIsKeptOnce", graphIsKeptOnce},
		{"MemoryIsNotShared", memoryIsNotShared},
		{"ClosedStoreRefuses", closedStoreRefuses},
	}},
	{"atomicity", nothing, []rule{
		{"AppendIsAllOrNothing", appendIsAllOrNothing},
		{"PostsAreDrainedWithAnAppend", postsAreDrainedWithAnAppend},
		{"NoMessageHasABadID", noMessageHasABadID},
		{"ForkIsAllOrNothing", forkIsAllOrNothing},
		{"TrimIsAllOrNothing", trimIsAllOrNothing},
		{"RestoreIsAllOrNothing", restoreIsAllOrNothing},
	}},
	{"conditions", nothing, []rule{
		{"AppendNeedsTheHead", appendNeedsTheHead},
		{"AppendNeedsTheLease", appendNeedsTheLease},
		{"LogIsOpenedOnce", logIsOpenedOnce},
		{"LeaseIsExclusive", leaseIsExclusive},
		{"LeaseEpochsRise", leaseEpochsRise},
		{"LeaseOfARunThatIsNotThere", leaseOfARunThatIsNotThere},
		{"PostIsIdempotent", postIsIdempotent},
		{"ClaimNeedsThatNobodyHasPosted", claimNeedsThatNobodyHasPosted},
		{"SnapshotNeedsLeaseAndPosition", snapshotNeedsLeaseAndPosition},
		{"NothingIsFoundOfNoRun", nothingIsFoundOfNoRun},
	}},
	{"leases", nothing, []rule{
		{"LapsedLeaseIsNobodys", lapsedLeaseIsNobodys},
		{"LapsedLeaseChangesNothing", lapsedLeaseChangesNothing},
		{"LapsedLeaseOfNoRun", lapsedLeaseOfNoRun},
		{"LateOwnerLeavesTheNextAlone", lateOwnerLeavesTheNextAlone},
		{"RenewalProlongs", renewalProlongs},
	}},
	{"isolation", nothing, []rule{
		{"RunIDsThatAreHard", runIDsThatAreHard},
		{"RunIDsThatBeginAlike", runIDsThatBeginAlike},
		{"RunIDsThatAreRefused", runIDsThatAreRefused},
		{"MessageIDsThatAreHard", messageIDsThatAreHard},
	}},
	{"paging", nothing, []rule{
		{"ListIsNewestFirst", listIsNewestFirst},
		{"PlaceInAListIsThatOfTheFirstAppend", placeInAListIsThatOfTheFirstAppend},
		{"ListTellsWhatStatTells", listTellsWhatStatTells},
		{"ListPages", listPages},
		{"ListFilters", listFilters},
		{"ListRefusesWhatNoRunIs", listRefusesWhatNoRunIs},
		{"FiltersAreExact", filtersAreExact},
	}},
	{"fork", nothing, []rule{
		{"ForkIsARun", forkIsARun},
		{"ForkOfManyRuns", forkOfManyRuns},
		{"BaseLivesWithItsRuns", baseLivesWithItsRuns},
		{"ShelfLivesWithItsRuns", shelfLivesWithItsRuns},
		{"ShelfHasToBeNamed", shelfHasToBeNamed},
	}},
	{"trim", nothing, []rule{
		{"TrimDropsThePast", trimDropsThePast},
		{"TrimAgainAndAgain", trimAgainAndAgain},
		{"TrimKeepsPinsAndMessages", trimKeepsPinsAndMessages},
		{"ReadGoesOnWhileTrimmed", readGoesOnWhileTrimmed},
		{"ShelfIsTrimmed", shelfIsTrimmed},
	}},
	{"delete", nothing, []rule{
		{"DeleteRemovesEverything", deleteRemovesEverything},
		{"NothingIsLeftForTheNext", nothingIsLeftForTheNext},
		{"DeleteLeavesOthersAlone", deleteLeavesOthersAlone},
		{"GraphOutlivesItsRuns", graphOutlivesItsRuns},
	}},
	{"archive", nothing, []rule{
		{"EnvelopesAreTheLog", envelopesAreTheLog},
		{"RestoreIsExact", restoreIsExact},
		{"RestoreOfForksAndTrimmed", restoreOfForksAndTrimmed},
		{"RestoreOfShelved", restoreOfShelved},
		{"RestoreOfWhatCantGoOn", restoreOfWhatCantGoOn},
		{"PostIsBehindRestoredOnes", postIsBehindRestoredOnes},
	}},
	{"limits", nothing, []rule{
		{"TooLargeChangesNothing", tooLargeChangesNothing},
		{"FullChangesNothing", fullChangesNothing},
	}},
	{"cancellation", nothing, []rule{
		{"CancelledContextChangesNothing", cancelledContextChangesNothing},
		{"CancelledAnywhereIsWholeOrNot", cancelledAnywhereIsWholeOrNot},
	}},
	{"concurrency", nothing, []rule{
		{"OneOfManyWritersWins", oneOfManyWritersWins},
		{"OneOfManyLargeWritersWins", oneOfManyLargeWritersWins},
		{"WritersOfManyRunsAreIndependent", writersOfManyRunsAreIndependent},
		{"ReadersSeeWholeAppends", readersSeeWholeAppends},
		{"InfoIsOfOneMoment", infoIsOfOneMoment},
		{"PostOfOneIDAtOnce", postOfOneIDAtOnce},
		{"ClaimBesideAPost", claimBesideAPost},
		{"PostBesideADrain", postBesideADrain},
		{"PostBesideADelete", postBesideADelete},
		{"AcquireBesideADelete", acquireBesideADelete},
		{"BaseBesideADelete", baseBesideADelete},
		{"ForksAtOnce", forksAtOnce},
		{"OneOfManyForksWins", oneOfManyForksWins},
		{"OneOfManyGraphsIsKept", oneOfManyGraphsIsKept},
		{"OneOfManyTrimsWins", oneOfManyTrimsWins},
		{"HistoryHasAnOrder", historyHasAnOrder},
	}},
	{"durability", reopening, []rule{
		{"EverythingIsThereAgain", everythingIsThereAgain},
		{"TheGraphOfNowIsThereAgain", theGraphOfNowIsThereAgain},
		{"LeasesEndWithTheStore", leasesEndWithTheStore},
		{"DeletedStaysDeleted", deletedStaysDeleted},
		{"OrderSurvives", orderSurvives},
		{"RestoredIsThereAgain", restoredIsThereAgain},
		{"PostIsBehindThoseOfBefore", postIsBehindThoseOfBefore},
		{"ForksAreThereAgain", forksAreThereAgain},
		{"ShelvesAreThereAgain", shelvesAreThereAgain},
	}},
	{"crash", crashing, []rule{
		{"AcknowledgedSurvivesACrash", acknowledgedSurvivesACrash},
		{"EachWriteSurvivesACrash", eachWriteSurvivesACrash},
		{"UnderWayIsWholeOrNot", underWayIsWholeOrNot},
		{"ForkUnderWayIsWholeOrNot", forkUnderWayIsWholeOrNot},
		{"TrimUnderWayIsWholeOrNot", trimUnderWayIsWholeOrNot},
		{"DeleteUnderWayIsWholeOrNot", deleteUnderWayIsWholeOrNot},
		{"LeaseOfTheDeadIsFree", leaseOfTheDeadIsFree},
		{"DeletedStaysDeletedOverACrash", deletedStaysDeletedOverACrash},
		{"SnapshotsSurviveOrNot", snapshotsSurviveOrNot},
	}},
	{"corruption", corrupting, []rule{
		{"FlippedBitIsFound", flippedBitIsFound},
		{"LostAppendIsFound", lostAppendIsFound},
		{"ForeignAppendIsFound", foreignAppendIsFound},
		{"OlderAppendIsFound", olderAppendIsFound},
		{"ForgedAppendIsFound", forgedAppendIsFound},
		{"DamagedSnapshotIsFound", damagedSnapshotIsFound},
		{"DamagedMessageIsFound", damagedMessageIsFound},
		{"DamagedBaseIsFound", damagedBaseIsFound},
		{"DamagedBaseIsNotShared", damagedBaseIsNotShared},
		{"DamagedInfoIsFound", damagedInfoIsFound},
		{"OlderInfoIsFound", olderInfoIsFound},
	}},
}
