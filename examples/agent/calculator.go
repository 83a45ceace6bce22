package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// calculator reckons exactly: a model would guess.
func calculator() Tool {
	return Tool{
		Name:       "calculator",
		About:      "Reckons with numbers, + - * / and parentheses, exactly.",
		Inputs:     []Input{{"expression", "such as (3 + 4) * 2.5"}},
		Access:     dag.Reads,
		Confidence: 1,
		Use: func(_ context.Context, _ string, inputs map[string]string) (string, error) {
			return reckon(inputs["expression"])
		},
	}
}

const longestExpression = 200 // bytes

// reckon gives the value of an expression. It is written as in Go, whose parser reads it.
func reckon(expression string) (string, error) {
	if len(expression) > longestExpression {
		return "", refuse("the expression has %d bytes, the limit is %d", len(expression), longestExpression)
	}
	tree, err := parser.ParseExpr(expression)
	if err != nil {
		return "", refuse("%q is no expression", expression)
	}
	v, err := value(tree)
	if err != nil {
		return "", err
	}
	if digits, finite := v.FloatPrec(); finite {
		return v.FloatString(digits), nil
	}
	return v.String(), nil // 1/3, of which every decimal would be inexact
}

func value(e ast.Expr) (*big.Rat, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.BasicLit:
		if strings.Trim(e.Value, "0123456789.") == "" { // neither 0x10 nor 1e999999999
			if x, ok := new(big.Rat).SetString(e.Value); ok {
				return x, nil
			}
		}
		return nil, refuse("%q is no number", e.Value)
	case *ast.UnaryExpr:
		x, err := value(e.X)
		if err != nil || e.Op != token.SUB && e.Op != token.ADD {
			return nil, orElse(err, "%q is no sign", e.Op)
		}
		if e.Op == token.SUB {
			x.Neg(x)
		}
		return x, nil
	case *ast.BinaryExpr:
		x, err := value(e.X)
		if err != nil {
			return nil, err
		}
		y, err := value(e.Y)
		if err != nil {
			return nil, err
		}
		return reckoned(x, e.Op, y)
	}
	return nil, refuse("the calculator knows numbers, + - * / and parentheses")
}

// reckoned is x op y, in the place of x.
func reckoned(x *big.Rat, op token.Token, y *big.Rat) (*big.Rat, error) {
	switch op {
	case token.ADD:
		return x.Add(x, y), nil
	case token.SUB:
		return x.Sub(x, y), nil
	case token.MUL:
		return x.Mul(x, y), nil
	case token.QUO:
		if y.Sign() == 0 {
			return nil, refuse("division by zero")
		}
		return x.Quo(x, y), nil
	}
	return nil, refuse("the calculator knows + - * /, not %q", op)
}

func orElse(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return refuse(format, args...)
}
